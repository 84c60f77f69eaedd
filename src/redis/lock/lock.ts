import { randomUUID } from 'node:crypto'
import { FluxGateError } from '../../core/errors.js'
import { given } from '../../core/omit-undefined.js'
import { type HeldGroup, Hold, type RunGuarded } from './hold.js'
import type { Keeper } from './keeper.js'
import { Lease } from './lease.js'
import { checkNames } from './lock-keys.js'
import { type AcquireOptions, acquireNames, checkOptions, type HoldOptions, invalid } from './lock-options.js'
import { obtain } from './obtain.js'
import type { WakeUps } from './wake-ups.js'

export type Work<T> = (signal: AbortSignal, hold: Hold) => T | Promise<T>

/** What can be held, and how. Names are those of locks, or of semaphores. */
export interface Holdable {
  /** Rejects with `FLUXGATE_LOCK_TIMEOUT` if others hold it for longer than `waitMs`. */
  acquire(names: string | readonly string[], options?: AcquireOptions): Promise<Hold>
  /** `undefined` if others hold it for longer than `waitMs`, which is 0 here unless it is said. */
  tryAcquire(names: string | readonly string[], options?: AcquireOptions): Promise<Hold | undefined>
  /**
   * Holds it while `work` runs. An error of `work` is passed on as it is. If `work` came to its end although the hold was
   * lost, it rejects with `FLUXGATE_LOCK_LOST`.
   */
  using<T>(names: string | readonly string[], work: Work<T>): Promise<T>
  using<T>(names: string | readonly string[], options: AcquireOptions, work: Work<T>): Promise<T>
  /** Sends those who wait away, releases what is still held through it and closes its connection, unless that is a client of the caller's. */
  close(): Promise<void>
}

/** What a kind of lock is made of. */
export interface LockParts {
  readonly keeper: Keeper
  readonly defaults: HoldOptions
  /** How long one call may take. */
  readonly timeoutMs: (ttlMs: number) => number
  /** Undefined where nobody tells what is free. */
  readonly wakeUps?: WakeUps
  /** Which names can be asked for in one call; the order is the same for everybody, so that nobody waits in a circle. */
  readonly groupsOf: (names: readonly string[]) => readonly (readonly string[])[]
  readonly run?: RunGuarded
  readonly close: () => Promise<void>
}

const defaultOptions = { ttlMs: 10_000, waitMs: 10_000, fair: false, watchdog: true }

export function createHoldable(parts: LockParts): Holdable {
  const leases = new Set<Lease>()
  /** What is still being given back. */
  const endings = new Set<Promise<unknown>>()
  const onEnd = (lease: Lease): boolean => leases.delete(lease)
  let isClosed = false

  function assertOpen(): void {
    if (isClosed) throw new FluxGateError('FLUXGATE_CLOSED', 'This lock was closed. Create another one.')
  }
  function settle(ending: Promise<unknown>): void {
    endings.add(ending)
    ending.finally(() => endings.delete(ending))
  }

  async function hold(
    names: string | readonly string[],
    options: AcquireOptions,
    defaults: HoldOptions = parts.defaults,
  ): Promise<Hold | undefined> {
    checkOptions('A hold', options, acquireNames)
    assertOpen()
    const { ttlMs, waitMs, fair, watchdog } = { ...defaultOptions, ...defaults, ...given(options) }
    if (fair && parts.wakeUps === undefined) throw noOrder()
    const { owner = randomUUID(), signal } = options
    const timeoutMs = parts.timeoutMs(ttlMs)
    const untilAt = performance.now() + waitMs
    const id = randomUUID()
    const groups: HeldGroup[] = []
    const wanted = parts.groupsOf(checkNames(names))
    try {
      for (const group of wanted) {
        const claim = { names: group, owner, id, ttlMs, fair }
        const signals = [...(signal ? [signal] : []), ...groups.map(({ lease }) => lease.signal)]
        const either = signals.length > 1 ? AbortSignal.any(signals) : signals[0]
        const patience = { untilAt, timeoutMs, assertOpen, signal: either }
        const obtained = await obtain(parts.keeper, claim, patience, parts.wakeUps, settle)
        if (obtained === undefined) break
        const lease = new Lease(parts.keeper, claim, obtained.askedAt, { watchdog, timeoutMs, onEnd })
        leases.add(lease)
        groups.push({ lease, fences: new Map(group.map((name, i) => [name, obtained.fences[i] as number])) })
      }
    } catch (error) {
      for (const { lease } of groups) settle(lease.release())
      throw error
    }
    if (groups.length === wanted.length) return new Hold(owner, groups, parts.run)
    await Promise.all(groups.map(({ lease }) => lease.release()))
    return undefined
  }

  const lock: Holdable = {
    async acquire(names, options = {}) {
      const found = await hold(names, options)
      if (found === undefined) throw timedOut(names)
      return found
    },
    async tryAcquire(names, options = {}) {
      return hold(names, options, { ...parts.defaults, waitMs: 0 })
    },
    async using<T>(names: string | readonly string[], ...rest: [Work<T>] | [AcquireOptions, Work<T>]): Promise<T> {
      const [options, work] = rest.length === 1 ? [{}, rest[0]] : rest
      // Looked at before anything is held.
      if (typeof work !== 'function') throw invalid(`using takes the work as a function, found ${String(work)}.`)
      const found = await lock.acquire(names, options)
      try {
        const signal = options.signal ? AbortSignal.any([found.signal, options.signal]) : found.signal
        const result = await work(signal, found)
        found.assertHeld()
        return result
      } finally {
        await found.release()
      }
    },
    async close() {
      isClosed = true
      parts.wakeUps?.callAll()
      await Promise.all(Array.from(leases, (lease) => lease.release()))
      await Promise.all(endings)
      await parts.close()
    },
  }
  return lock
}

export const noOrder = (): FluxGateError =>
  invalid('A quorum has no order of asking: servers that know nothing of each other keep no line.')

function timedOut(names: string | readonly string[]): FluxGateError {
  const list = [names].flat().map((name) => JSON.stringify(name))
  return new FluxGateError(
    'FLUXGATE_LOCK_TIMEOUT',
    `Others hold ${list.join(', ')} for longer than the caller wanted to wait. Wait longer, or try again later.`,
  )
}
