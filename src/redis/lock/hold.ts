import { FluxGateError } from '../../core/errors.js'
import type { GuardedScript } from './guarded-script.js'
import type { Lease } from './lease.js'
import { invalid } from './lock-options.js'

/** Held locks of one slot, or all of them where there are no slots. */
export interface HeldGroup {
  readonly lease: Lease
  readonly fences: ReadonlyMap<string, number>
}

/** Runs a script that writes only while the locks of the hold are still its own. */
export type RunGuarded = (
  hold: Hold,
  script: GuardedScript,
  keys: readonly string[],
  args: readonly (string | number)[],
) => Promise<unknown>

/**
 * What somebody holds: one lock or several, or a permit of a semaphore. `signal` aborts at the latest when the lease ends
 * by the clock of this process. What is done after that is not protected, unless whatever is written to checks the fence.
 */
export class Hold implements AsyncDisposable {
  readonly names: readonly string[]
  readonly owner: string
  /** Aborts with `FLUXGATE_LOCK_LOST` when it is no longer held; not when it is released. */
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

  /** The fencing token: greater than that of everybody who has held it before. Of several locks, that of the first name. */
  get fence(): number {
    return this.fenceOf(this.names[0] as string)
  }

  fenceOf(name: string): number {
    const fence = this.#groups.map(({ fences }) => fences.get(name)).find((value) => value !== undefined)
    if (fence === undefined) throw invalid(`${JSON.stringify(name)} is not among the names of this hold.`)
    return fence
  }

  get isHeld(): boolean {
    return this.#groups.every(({ lease }) => lease.isHeld)
  }

  /** How long it may be relied on from now, if nobody prolongs it. */
  get remainingMs(): number {
    return Math.min(...this.#groups.map(({ lease }) => lease.remainingMs))
  }

  /** Throws if it is not held. Before a step that must not be done by two. */
  assertHeld(): void {
    if (this.isHeld) return
    this.signal.throwIfAborted()
    throw lost('it was released')
  }

  /** Prolongs the lease now, to at least `ttlMs`. Rejects with `FLUXGATE_LOCK_LOST` if it is no longer held. */
  async extend(ttlMs?: number): Promise<void> {
    const extended = await Promise.all(this.#groups.map(({ lease }) => lease.extend(ttlMs)))
    if (extended.includes(false)) this.assertHeld()
  }

  /**
   * Runs a script that checks, in the same step, that the locks are still those of this hold: one who has lost them cannot
   * write. `keys` have to share a slot with one of the locks.
   */
  run(
    script: GuardedScript,
    { keys = [], args = [] }: { keys?: readonly string[]; args?: readonly (string | number)[] } = {},
  ): Promise<unknown> {
    if (this.#run === undefined)
      throw invalid('Guarded scripts run under locks on one Redis; this is another kind of hold.')
    return this.#run(this, script, keys, args)
  }

  /** True if it was held until now. Never rejects: what cannot be told to Redis ends there with its lease. */
  async release(): Promise<boolean> {
    const held = await Promise.all(this.#groups.map(({ lease }) => lease.release()))
    return !held.includes(false)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }

  /** @internal Somebody has found out that it is lost. */
  lose(): void {
    for (const { lease } of this.#groups) lease.lose()
  }
}

const lost = (why: string): FluxGateError => new FluxGateError('FLUXGATE_LOCK_LOST', `The lock is not held: ${why}.`)
