import { describe, expect, it } from 'vitest'
import type { Clock } from '../../core/clock.js'
import type { RuleSetProvider } from '../../core/contracts/rule-set-provider.js'
import { FluxGateError } from '../../core/errors.js'
import { manualClock } from '../../testing/index.js'
import { fileRules } from '../file-provider.js'
import { objectRules } from '../object-provider.js'
import { chooseReload, noReload } from './choose-reload.js'

import { pollingReload } from './polling-reload.js'
import { watchReload } from './watch-reload.js'

/** A clock that records scheduled timers and fires them on demand. */
function scheduledClock() {
  const waits: number[] = []
  let pending: (() => void) | undefined
  const clock: Clock = {
    now: () => 0,
    schedule(ms, wake) {
      waits.push(ms)
      pending = wake
      return () => {
        pending = undefined
      }
    },
  }
  const fire = async () => {
    pending?.()
    await new Promise(setImmediate)
  }
  return { clock, waits, fire, isWaiting: () => pending !== undefined }
}

describe('polling', () => {
  it('reloads after each interval, varied by the jitter', async () => {
    const { clock, waits, fire } = scheduledClock()
    const randoms = [0, 0.5, 1]
    let reloads = 0
    const random = () => randoms.shift() ?? 0.5
    pollingReload({ intervalMs: 10_000, jitter: 0.2, random, clock }).start(async () => void reloads++)
    expect(reloads).toBe(0)
    await fire()
    await fire()
    expect(reloads).toBe(2)
    expect(waits).toEqual([8_000, 10_000, 12_000])
  })

  it('reloads every 30 s by default', () => {
    const { clock, waits } = scheduledClock()
    pollingReload({ random: () => 0.5, clock }).start(async () => {})
    expect(waits).toEqual([30_000])
  })

  it('continues after a failed reload, and stops even during one', async () => {
    const { clock, waits, fire, isWaiting } = scheduledClock()
    let finish = () => {}
    const results = [Promise.reject(new Error('down')), new Promise<void>((resolve) => (finish = resolve))]
    const stop = pollingReload({ intervalMs: 10, jitter: 0, clock }).start(() => results.shift() ?? Promise.resolve())
    await fire()
    expect(waits).toEqual([10, 10])
    await fire()
    stop()
    finish()
    await new Promise(setImmediate)
    expect(waits).toEqual([10, 10])
    expect(isWaiting()).toBe(false)
  })

  it('works with real timers', async () => {
    let stop = () => {}
    await new Promise<void>((resolve) => {
      stop = pollingReload({ intervalMs: 1 }).start(async () => resolve())
    })
    stop()
  })

  it.each([{ intervalMs: 0 }, { intervalMs: Number.NaN }, { intervalMs: 2 ** 31 }, { jitter: -0.1 }, { jitter: 1.1 }])(
    'rejects %j',
    (options) => {
      expect(() => pollingReload(options)).toThrow(/^(intervalMs|jitter) must be a number from /)
    },
  )
})

describe('watching', () => {
  it('reloads on each change and each error, and reports the error', async () => {
    let change = () => {}
    let fail = (_error: unknown) => {}
    let stopped = false
    const provider: RuleSetProvider = {
      source: 'x',
      load: async () => [],
      watch(onChange, onError) {
        change = onChange
        fail = onError
        return () => {
          stopped = true
        }
      },
    }
    const errors: unknown[] = []
    let reloads = 0
    const stop = watchReload(provider, (error) => errors.push(error)).start(async () => void reloads++)
    change()
    expect(reloads).toBe(1)
    fail('failure')
    expect(reloads).toBe(2)
    expect(errors).toEqual(['failure'])
    stop()
    expect(stopped).toBe(true)
  })
})

describe('announcements', () => {
  it('reload immediately, and polling continues because a subscription may be lost', async () => {
    const { clock, waits, fire, isWaiting } = scheduledClock()
    let announce = () => {}
    let isWatched = false
    const provider: RuleSetProvider = {
      source: 'x',
      load: async () => [],
      watchKind: 'PUBSUB',
      watch(onChange) {
        announce = onChange
        isWatched = true
        return () => {
          isWatched = false
        }
      },
    }
    let reloads = 0
    const strategy = await chooseReload('PUBSUB', provider, { intervalMs: 1_000, jitter: 0, clock })
    const stop = strategy.start(async () => void reloads++)
    announce()
    expect(reloads).toBe(1)
    await fire()
    expect(reloads).toBe(2)
    expect(waits).toEqual([1_000, 1_000])
    stop()
    expect([isWatched, isWaiting()]).toEqual([false, false])
  })
})

describe('a failed load after an announcement', () => {
  it.each([
    ['FLUXGATE_RULES_UNREADABLE', [1, 1, 2, 2, 3, 3]],
    ['FLUXGATE_RULES_INVALID', [1, 1, 1, 1, 1, 1]],
  ] as const)('with %s is retried soon only if the rules are unreadable', async (code, expected) => {
    const clock = manualClock(0)
    let announce = () => {}
    const watch = (onChange: () => void) => {
      announce = onChange
      return () => {}
    }
    const provider: RuleSetProvider = { source: 'x', load: async () => [], watchKind: 'PUBSUB', watch }
    const strategy = await chooseReload('PUBSUB', provider, { intervalMs: 3_600_000, clock })
    let attempts = 0
    const stop = strategy.start(async () => {
      if (++attempts < 3) throw new FluxGateError(code, 'no')
    })
    const seen: number[] = []
    const after = async (ms: number) => {
      clock.advance(ms)
      await new Promise(setImmediate)
      seen.push(attempts)
    }
    announce()
    for (const ms of [0, 49, 1, 99, 1, 60_000]) await after(ms)
    expect(seen).toEqual(expected)
    stop()
  })
})

describe('chooseReload', () => {
  const file = fileRules('rules.yaml')
  const objects = objectRules([], 'objects')
  const announced: RuleSetProvider = { ...file, watchKind: 'PUBSUB' }
  const watched = (canWatch: boolean): RuleSetProvider => ({ ...file, canWatch: async () => canWatch })

  it.each([
    ['AUTO', file, 'WATCH'],
    ['WATCH', file, 'WATCH'],
    ['POLLING', file, 'POLLING'],
    ['NONE', file, 'NONE'],
    ['AUTO', objects, 'POLLING'],
    ['AUTO', announced, 'PUBSUB'],
    ['PUBSUB', announced, 'PUBSUB'],
    ['POLLING', announced, 'POLLING'],
    ['AUTO', watched(false), 'POLLING'],
    ['AUTO', watched(true), 'WATCH'],
  ] as const)('%s', async (choice, provider, name) => {
    expect((await chooseReload(choice, provider)).name).toBe(name)
  })

  it.each([
    ['WATCH', objects, 'Rules from objects cannot be watched; use the reload strategy AUTO, POLLING or NONE.'],
    ['WATCH', watched(false), 'Rules from rules.yaml cannot be watched'],
    ['WATCH', announced, 'Rules from rules.yaml cannot be watched'],
    ['PUBSUB', file, 'Rules from rules.yaml are not announced on a channel; use the reload strategy AUTO.'],
  ] as const)('rejects %s if the provider does not support it', async (choice, provider, message) => {
    await expect(chooseReload(choice, provider)).rejects.toThrow(message)
  })

  it('NONE never reloads', () => {
    expect(noReload.start(() => Promise.reject(new Error('asked')))()).toBeUndefined()
  })
})
