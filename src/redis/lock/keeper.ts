/** What somebody asks for. The same claim, asked for again after a lost reply, is the same hold. */
export interface Claim {
  /** Of one slot, if there are slots. */
  readonly names: readonly string[]
  /** Whoever names the same owner shares its locks. */
  readonly owner: string
  /** Of this hold alone. */
  readonly id: string
  readonly ttlMs: number
  /** In the order of asking. */
  readonly fair: boolean
}

export interface Granted {
  readonly granted: true
  /** One for each name, greater than any that was given for it before. */
  readonly fences: readonly number[]
}

export interface Busy {
  readonly granted: false
  /** Where it will be told that trying again may help; undefined if nobody tells. */
  readonly channel: string | undefined
  /** After so long it may help in any case. */
  readonly retryInMs: number
}

/** Where it is kept who holds what. Everything may be asked again, and rejects if it is not known what came of it. */
export interface Keeper {
  /** All names or none. */
  grant(claim: Claim): Promise<Granted | Busy>
  /** Prolongs the lease by all of its time from now on; false if the hold is lost. */
  extend(claim: Claim): Promise<boolean>
  /** Ends the hold and leaves the line; false if there was nothing to end. */
  release(claim: Claim): Promise<boolean>
}

/** A place in line is kept so long without a sign of life. */
export const placeMs = 3_000
/** After so long a fence is forgotten, and time alone makes the next one greater. */
export const fenceMs = 7 * 86_400_000

/** Who is said to fail. */
export const who = 'The lock'
