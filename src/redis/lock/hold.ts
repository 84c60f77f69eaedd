import { FluxGateError } from '../../core/errors.js'
import type { GuardedScript } from './guarded-script.js'
import type { Lease } from './lease.js'
import { invalid } from './options.js'

/** The held locks of one cluster slot, or all held locks outside a cluster. */
export interface HeldGroup {
  readonly lease: Lease
  readonly fences: ReadonlyMap<string, number>
}

/** Runs a script only if the hold still owns its locks. */
export type RunGuarded = (
  hold: Hold,
  script: GuardedScript,
  keys: readonly string[],
  args: readonly (string | number)[],
) => Promise<unknown>

/**
 * One or more held locks, or a held permit of a semaphore. `signal` aborts at the latest when the lease expires by the
 * clock of this process. Later writes are only protected if their target checks the fencing token.
 */
export class Hold implements AsyncDisposable {
  /** The names of the locks, sorted within each cluster slot. */
  readonly names: readonly string[]
  /** The owner, which other holds can share. */
  readonly owner: string
  /** Aborts with `FLUXGATE_LOCK_LOST` when the hold is lost. It does not abort on `release()`. */
  readonly signal: AbortSignal
  readonly #groups: readonly HeldGroup[]
  readonly #run: RunGuarded | undefined

  constructor(owner: string, groups: readonly HeldGroup[], run?: RunGuarded) {
    this.owner = owner
    this.names = groups.flatMap(({ fences }) => [...fences.keys()])
    const signals = groups.map(({ lease }) => lease.signal)
    this.signal = signals.length === 1 ? (signals[0] as AbortSignal) : AbortSignal.any(signals)
    this.#groups = groups
    this.#run = run
  }

  /** The fencing token, which is greater than that of every earlier hold. With several locks, the token of the first name. */
  get fence(): number {
    return this.fenceOf(this.names[0] as string)
  }

  /** The fencing token of one lock. Throws `FLUXGATE_ARGUMENT_INVALID` if the hold does not include the name. */
  fenceOf(name: string): number {
    const fence = this.#groups.map(({ fences }) => fences.get(name)).find((value) => value !== undefined)
    if (fence === undefined)
      throw invalid(
        `name must be one of ${this.names.map((held) => JSON.stringify(held)).join(', ')}; received ${JSON.stringify(name)}.`,
      )
    return fence
  }

  /** False once the hold is released, lost or expired. */
  get isHeld(): boolean {
    return this.#groups.every(({ lease }) => lease.isHeld)
  }

  /** The remaining lease in milliseconds, unless it is extended; 0 if not held. */
  get remainingMs(): number {
    return Math.min(...this.#groups.map(({ lease }) => lease.remainingMs))
  }

  /** Throws `FLUXGATE_LOCK_LOST` if not held. Call it before a step that two processes must not do at the same time. */
  assertHeld(): void {
    if (this.isHeld) return
    this.signal.throwIfAborted()
    throw lost('it was released')
  }

  /**
   * Extends the lease to at least `ttlMs` from now. Default: the current lease duration. Rejects with `FLUXGATE_LOCK_LOST`
   * if no longer held.
   */
  async extend(ttlMs?: number): Promise<void> {
    const extended = await Promise.all(this.#groups.map(({ lease }) => lease.extend(ttlMs)))
    if (extended.includes(false)) this.assertHeld()
  }

  /**
   * Runs a script that first checks, atomically, that this hold still owns its locks. A holder that has lost them cannot
   * write. Only available for `redisLock`.
   *
   * In a cluster, `keys` must be in the slot of one of the locks. Rejects with `FLUXGATE_LOCK_LOST` if a lock was lost; the
   * script was then not run.
   */
  run(
    script: GuardedScript,
    { keys = [], args = [] }: { keys?: readonly string[]; args?: readonly (string | number)[] } = {},
  ): Promise<unknown> {
    if (this.#run === undefined)
      throw invalid('hold must be of redisLock to run a guarded script; quorum locks and semaphores do not support it.')
    return this.#run(this, script, keys, args)
  }

  /**
   * Releases the hold. Resolves with true if it was held until now. Never rejects: if Redis cannot be reached, the lock
   * expires with its lease.
   */
  async release(): Promise<boolean> {
    const held = await Promise.all(this.#groups.map(({ lease }) => lease.release()))
    return !held.includes(false)
  }

  /** Releases the hold at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }

  /** @internal Marks the hold as lost. */
  lose(): void {
    for (const { lease } of this.#groups) lease.lose()
  }
}

const lost = (why: string): FluxGateError => new FluxGateError('FLUXGATE_LOCK_LOST', `The lock is not held: ${why}.`)
