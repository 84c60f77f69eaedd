import { randomUUID } from 'node:crypto'
import { FluxGateError } from '../../core/errors.js'
import { omitUndefined } from '../../core/omit-undefined.js'
import { callback } from '../../validation/kinds.js'
import { checkArgument } from '../../validation/options.js'
import { acquire } from './acquire.js'
import type { LockBackend } from './backend.js'
import { type HeldGroup, Hold, type RunGuarded } from './hold.js'
import { checkNames } from './keys.js'
import { Lease } from './lease.js'
import { type AcquireOptions, acquireOptions, type HoldOptions, invalid } from './options.js'
import type { Waiters } from './waiters.js'

/** The work that `using` runs. `signal` aborts when the hold is lost or the caller's signal aborts. */
export type Work<T> = (signal: AbortSignal, hold: Hold) => T | Promise<T>

/** Locks or semaphores, identified by name. */
export interface Holdable {
  /** Acquires all names. Rejects with `FLUXGATE_LOCK_TIMEOUT` if other owners hold one of them for longer than `waitMs`. */
  acquire(names: string | readonly string[], options?: AcquireOptions): Promise<Hold>
  /** Like `acquire`, but resolves with `undefined` instead of timing out. `waitMs` is 0 unless the options set it. */
  tryAcquire(names: string | readonly string[], options?: AcquireOptions): Promise<Hold | undefined>
  /**
   * Acquires all names, runs `work` and releases them. Rejects with the unchanged error of `work`. If `work` completes
   * although the hold was lost, `using` rejects with `FLUXGATE_LOCK_LOST`.
   *
   * @example
   * ```ts
   * const total = await lock.using('invoice:7', { waitMs: 2_000 }, (signal) => recalculate(7, { signal }))
   * ```
   */
  using<T>(names: string | readonly string[], work: Work<T>): Promise<T>
  using<T>(names: string | readonly string[], options: AcquireOptions, work: Work<T>): Promise<T>
  /**
   * Rejects waiting calls with `FLUXGATE_CLOSED`, releases all holds and closes the connection. The caller's client stays
   * open.
   */
  close(): Promise<void>
}

/** The parts of an implementation: a lock, a quorum lock or a semaphore. */
export interface LockParts {
  readonly backend: LockBackend
  readonly defaults: HoldOptions
  /** The timeout of one call. */
  readonly timeoutMs: (ttlMs: number) => number
  /** `undefined` if releases are not announced. */
  readonly waiters?: Waiters
  /** Splits names into groups that one call can request. The order of groups is the same for all callers, which prevents deadlocks. */
  readonly groupsOf: (names: readonly string[]) => readonly (readonly string[])[]
  readonly run?: RunGuarded
  readonly close: () => Promise<void>
}

const defaultOptions = { ttlMs: 10_000, waitMs: 10_000, fair: false, watchdog: true }

export function createHoldable(parts: LockParts): Holdable {
  const leases = new Set<Lease>()
  /** Releases in flight. */
  const pendingReleases = new Set<Promise<unknown>>()
  const onEnd = (lease: Lease): boolean => leases.delete(lease)
  let isClosed = false

  function assertOpen(): void {
    if (isClosed) throw new FluxGateError('FLUXGATE_CLOSED', 'The lock was closed. Create a new one.')
  }
  function trackRelease(release: Promise<unknown>): void {
    pendingReleases.add(release)
    release.finally(() => pendingReleases.delete(release))
  }

  async function hold(
    names: string | readonly string[],
    options: AcquireOptions,
    defaults: HoldOptions = parts.defaults,
  ): Promise<Hold | undefined> {
    checkArgument('options', options, acquireOptions)
    assertOpen()
    const { ttlMs, waitMs, fair, watchdog } = { ...defaultOptions, ...defaults, ...omitUndefined(options) }
    if (fair && parts.waiters === undefined) throw fairUnsupported()
    const { owner = randomUUID(), signal } = options
    const timeoutMs = parts.timeoutMs(ttlMs)
    const deadlineAt = performance.now() + waitMs
    const id = randomUUID()
    const groups: HeldGroup[] = []
    const nameGroups = parts.groupsOf(checkNames(names))
    try {
      for (const group of nameGroups) {
        const request = { names: group, owner, id, ttlMs, fair }
        const signals = [...(signal ? [signal] : []), ...groups.map(({ lease }) => lease.signal)]
        const anySignal = signals.length > 1 ? AbortSignal.any(signals) : signals[0]
        const limits = { deadlineAt, timeoutMs, assertOpen, signal: anySignal }
        const acquired = await acquire(parts.backend, request, limits, parts.waiters, trackRelease)
        if (acquired === undefined) break
        const lease = new Lease(parts.backend, request, acquired.requestedAt, { watchdog, timeoutMs, onEnd })
        leases.add(lease)
        groups.push({ lease, fences: new Map(group.map((name, i) => [name, acquired.fences[i] as number])) })
      }
    } catch (error) {
      for (const { lease } of groups) trackRelease(lease.release())
      throw error
    }
    if (groups.length === nameGroups.length) return new Hold(owner, groups, parts.run)
    await Promise.all(groups.map(({ lease }) => lease.release()))
    return undefined
  }

  const lock: Holdable = {
    async acquire(names, options = {}) {
      const held = await hold(names, options)
      if (held === undefined) throw timedOut(names)
      return held
    },
    async tryAcquire(names, options = {}) {
      return hold(names, options, { ...parts.defaults, waitMs: 0 })
    },
    async using<T>(names: string | readonly string[], ...rest: [Work<T>] | [AcquireOptions, Work<T>]): Promise<T> {
      const [options, work] = rest.length === 1 ? [{}, rest[0]] : rest
      // Validated before anything is acquired.
      checkArgument('work', work, callback)
      const held = await lock.acquire(names, options)
      try {
        const signal = options.signal ? AbortSignal.any([held.signal, options.signal]) : held.signal
        const result = await work(signal, held)
        held.assertHeld()
        return result
      } finally {
        await held.release()
      }
    },
    async close() {
      isClosed = true
      parts.waiters?.notifyAll()
      await Promise.all(Array.from(leases, (lease) => lease.release()))
      await Promise.all(pendingReleases)
      await parts.close()
    },
  }
  return lock
}

export const fairUnsupported = (): FluxGateError =>
  invalid(
    'fair must be false for quorumLock: independent servers cannot keep a common queue. Use redisLock for fair locks.',
  )

function timedOut(names: string | readonly string[]): FluxGateError {
  const list = [names].flat().map((name) => JSON.stringify(name))
  return new FluxGateError(
    'FLUXGATE_LOCK_TIMEOUT',
    `The lock ${list.join(', ')} was not acquired within waitMs because other owners hold it. Increase waitMs, or try again later.`,
  )
}
