import { describe, expect, it } from 'vitest'
import { type BucketStore, type Charge, type ChargeResult, copyResult } from '../../core/bucket-store.js'
import { bucketStoreContract } from '../../testing/bucket-store-contract.js'
import { band, chargeOf, group, second, startMs } from '../../testing/fixtures.js'
import { manualClock } from '../../testing/manual-clock.js'
import { memoryStore } from '../memory/memory-store.js'
import { resilient } from './resilient.js'

describe('resilient', () => {
  bucketStoreContract(it, (clock) => resilient(memoryStore({ clock }), { clock }), { histories: 20 })

  it.each([{ timeoutMs: -1 }, { timeoutMs: '100' }, { failures: 0 }, { openMs: Number.NaN }])(
    'rejects %j',
    (options) => {
      expect(() => resilient(memoryStore(), options as object)).toThrow(
        expect.objectContaining({ code: 'FLUXGATE_ARGUMENT_INVALID' }),
      )
    },
  )

  describe('a charge that is answered after its deadline', () => {
    /** Charges at once and replies when `reply` is called, which is too late. */
    function lateStore() {
      const clock = manualClock(startMs)
      const memory = memoryStore({ clock })
      const replies: (() => void)[] = []
      const slow: BucketStore = {
        charge: (demands: readonly Charge[], peek: boolean) => {
          const result = copyResult(demands, memory.chargeSync(demands, peek))
          return new Promise<ChargeResult>((resolve) => replies.push(() => resolve(result)))
        },
        refund: (refunds) => memory.refund(refunds),
        reset: (rule, key) => memory.reset(rule, key),
        close: () => memory.close(),
      }
      const store = resilient(slow, { clock })
      const chargeLate = async (asked: Charge, waitMs: number, meanwhile: () => void): Promise<void> => {
        const late = expect(store.charge([asked], false)).rejects.toMatchObject({ code: 'FLUXGATE_STORE_TIMEOUT' })
        clock.advance(100)
        await late
        clock.advance(waitMs - 100)
        meanwhile()
        replies.shift()?.()
        for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
      }
      const take = (asked: Charge): boolean => memory.chargeSync([asked], false).granted
      return { chargeLate, take }
    }

    it('admits no request too many to a token bucket that was refilled in the meantime', async () => {
      const { chargeLate, take } = lateStore()
      const rule = group('fast', [band({ capacity: 20, refillTokens: 30, windowTicks: second })])
      let admitted = 0
      const takeAll = (): void => {
        while (take(chargeOf(rule, 'a'))) admitted += 1
      }
      await chargeLate(chargeOf(rule, 'a', { permits: 20 }), 600, takeAll)
      takeAll()
      // 18 were refilled in 600 ms.
      expect(admitted).toBe(18)
    })

    it('is given back to a token bucket that could not have become full', async () => {
      const { chargeLate, take } = lateStore()
      const rule = group('slow', [band({ capacity: 10, windowTicks: 86_400 * second })])
      expect(take(chargeOf(rule, 'a', { permits: 3 }))).toBe(true)
      await chargeLate(chargeOf(rule, 'a', { permits: 5 }), 600, () => {})
      expect(take(chargeOf(rule, 'a', { permits: 7 }))).toBe(true)
      expect(take(chargeOf(rule, 'a'))).toBe(false)
    })
  })
})
