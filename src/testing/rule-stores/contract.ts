import assert from 'node:assert/strict'
import type { Clock } from '../../core/clock.js'
import type { RuleStore } from '../../core/contracts/rule-store.js'
import type { TestRunner } from '../bucket-store-contract.js'
import { manualClock } from '../manual-clock.js'
import { attributesContract } from './attributes.js'
import { editingContract } from './editing.js'
import { by, rejects, rule, startMs, type WithRuleStore } from './fixtures.js'
import { checkRandomEdits } from './random-edits.js'
import { readingContract } from './reading.js'

/** The rule storage of one contract test. */
export interface RuleStorageFixture {
  /** Opens another store over the same storage, as another process would. */
  open(): RuleStore | Promise<RuleStore>
  /** Called after the test, when all stores are closed. */
  remove?(): Promise<void>
}

/** Creates empty rule storage for one contract test. */
export type RuleStorageFactory = (clock: Clock) => RuleStorageFixture | Promise<RuleStorageFixture>

/** Options of `ruleStoreContract`. */
export interface RuleStoreContractOptions {
  /** True if stores detect each other's changes with `watch`. Default false. */
  readonly notices?: boolean
  /** The number of random edits that are compared with a model of the store. Default 200. */
  readonly edits?: number
  /** The seed of the random edits, which is printed when they fail. Default: from the current time. */
  readonly seed?: number
}

/**
 * Registers the tests that every rule store must pass. Several stores are opened over the same storage, as by several
 * processes.
 *
 * @example
 * describe('myRuleStore', () =>
 *   ruleStoreContract(it, async (clock) => {
 *     const storage = await createEmptyStorage()
 *     return { open: () => myRuleStore(storage, { clock }) }
 *   }))
 */
export function ruleStoreContract(
  it: TestRunner,
  create: RuleStorageFactory,
  options: RuleStoreContractOptions = {},
): void {
  const withPlace: WithRuleStore = (title, test) =>
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

  withPlace('notifies edit listeners before an edit resolves, until they are removed', async ({ store }) => {
    const seen: unknown[] = []
    const listen = store.onEdit ?? assert.fail('The rule store must have onEdit.')
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
    withPlace('notifies a watcher of changes by another store', async ({ store, open }) => {
      const other = await open()
      await store.putRuleSet({ id: 'api', rules: [rule('a')] }, { by })
      await other.load()
      const watch = other.watch ?? assert.fail('A store with the option `notices` must have watch.')
      let stop = (): void => {}
      const noticed = new Promise<void>((resolve, reject) => {
        stop = watch.call(other, resolve, reject)
      })
      try {
        // A watcher may start with a delay, so the rules are edited until it reports a change.
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

  withPlace('rejects with FLUXGATE_CLOSED after close', async ({ store }) => {
    await store.close()
    await rejects(store.load(), 'FLUXGATE_CLOSED')
    await rejects(store.putRuleSet({ id: 'api', rules: [] }, { by }), 'FLUXGATE_CLOSED')
    await rejects(store.getRuleSet('api'), 'FLUXGATE_CLOSED')
  })

  withPlace('agrees with a model after random edits by two editors', async ({ store, open, clock }) => {
    const { edits = 200, seed = Date.now() } = options
    await checkRandomEdits([store, await open()], { edits, seed, clock })
  })
}
