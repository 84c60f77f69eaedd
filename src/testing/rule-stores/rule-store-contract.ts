/**
 * What every rule store promises, as tests. Give it the runner's `it` and a way to make an empty place for rules, which
 * can be opened several times, as several processes would:
 *
 *   describe('myRuleStore', () => ruleStoreContract(it, async (clock) => {
 *     const where = await somewhereEmpty()
 *     return { open: () => myRuleStore(where, { clock }) }
 *   }))
 */
import assert from 'node:assert/strict'
import type { Clock } from '../../core/clock.js'
import type { RuleStore } from '../../core/rule-store.js'
import type { TestRunner } from '../bucket-store-contract.js'
import { manualClock } from '../manual-clock.js'
import { checkRandomEdits } from './random-rule-edits.js'
import { attributesContract } from './rule-store-attributes.js'
import { by, rejects, rule, startMs, type WithPlace } from './rule-store-bed.js'
import { editingContract } from './rule-store-editing.js'
import { readingContract } from './rule-store-reading.js'

export interface RulePlace {
  /** A store of its own over the rules that are kept in this place. */
  open(): RuleStore | Promise<RuleStore>
  /** Called after the test, when all stores are closed. */
  remove?(): Promise<void>
}

export type RulePlaceFactory = (clock: Clock) => RulePlace | Promise<RulePlace>

export interface RuleStoreContractOptions {
  /** Whether stores notice each other's changes by `watch`; default false. */
  readonly notices?: boolean
  /** How many random edits are compared with a model of the store; default 200. */
  readonly edits?: number
  /** Where the random edits start; it is printed when they fail. Default from the time. */
  readonly seed?: number
}

export function ruleStoreContract(
  it: TestRunner,
  create: RulePlaceFactory,
  options: RuleStoreContractOptions = {},
): void {
  const withPlace: WithPlace = (title, test) =>
    it(title, async () => {
      const clock = manualClock(startMs)
      const place = await create(clock)
      const opened: RuleStore[] = []
      const open = async (): Promise<RuleStore> => {
        const store = await place.open()
        opened.push(store)
        return store
      }
      try {
        await test({ store: await open(), open, clock })
      } finally {
        for (const store of opened) await store.close()
        await place.remove?.()
      }
    })

  editingContract(withPlace)
  attributesContract(withPlace)
  readingContract(withPlace)

  withPlace('an edit is told in this process before it is answered, until nobody listens', async ({ store }) => {
    const seen: unknown[] = []
    const listen = store.onEdit ?? assert.fail('a rule store has onEdit')
    const stop = listen.call(store, async () => {
      await new Promise(setImmediate)
      seen.push((await store.load()).map(({ id }) => id))
    })
    await store.putRuleSet({ id: 'api', rules: [] }, { by })
    assert.deepEqual(seen, [['api']])
    await store.deleteRuleSet('api', { by })
    assert.deepEqual(seen, [['api'], []])
    stop()
    await store.putRuleSet({ id: 'api', rules: [] }, { by })
    assert.equal(seen.length, 2)
  })

  if (options.notices)
    withPlace('a change made elsewhere is noticed by those who watch', async ({ store, open }) => {
      const other = await open()
      await store.putRuleSet({ id: 'api', rules: [rule('a')] }, { by })
      await other.load()
      const watch = other.watch ?? assert.fail('a store that notices changes has watch')
      let stop = (): void => {}
      const noticed = new Promise<void>((resolve, reject) => {
        stop = watch.call(other, resolve, reject)
      })
      try {
        // A watcher may need a moment before it sees anything, so the edits go on until one is seen.
        let isNoticed = false
        const seen = noticed.then(() => {
          isNoticed = true
        })
        for (let i = 0; !isNoticed && i < 1_000; i++) {
          await store.putRule('api', rule('a', { name: `n${i}` }), { by })
          await Promise.race([seen, new Promise((resolve) => setTimeout(resolve, 50))])
        }
        await seen
      } finally {
        stop()
      }
    })

  withPlace('a closed store says so', async ({ store }) => {
    await store.close()
    await rejects(store.load(), 'FLUXGATE_CLOSED')
    await rejects(store.putRuleSet({ id: 'api', rules: [] }, { by }), 'FLUXGATE_CLOSED')
    await rejects(store.getRuleSet('api'), 'FLUXGATE_CLOSED')
  })

  withPlace('random edits by two editors leave what a model of the store has', async ({ store, open, clock }) => {
    const { edits = 200, seed = Date.now() } = options
    await checkRandomEdits([store, await open()], { edits, seed, clock })
  })
}
