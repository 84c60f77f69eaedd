import assert from 'node:assert/strict'
import type { RuleSetProvider } from '../../core/contracts/rule-set-provider.js'
import { FluxGateError } from '../../core/errors.js'
import type { RuleSet } from '../../core/rule.js'
import type { TestRunner } from '../bucket-store-contract.js'

/** The provider of one contract test, with access to its storage. */
export interface ProviderFixture {
  /** The provider under test. */
  readonly provider: RuleSetProvider
  /** Replaces the stored rules with a document `{ ruleSets: [...] }`, as in a rules file. The document may be invalid. */
  put(document: unknown): void | Promise<void>
  /** Called after the test, when no watcher is left. */
  remove?(): void | Promise<void>
}

/** Creates the provider of one contract test. */
export type ProviderFactory = () => ProviderFixture | Promise<ProviderFixture>

const withCapacity = (capacity: unknown) => ({
  ruleSets: [
    { id: 'api', strategy: 'first', rules: [{ id: 'a', method: 'get', bands: [{ capacity, window: '1m' }] }] },
    { id: 'web', rules: [] },
  ],
})
const capacityOf = (ruleSets: readonly RuleSet[]): number | undefined => ruleSets[0]?.rules[0]?.bands[0]?.capacity

/**
 * Registers the tests that every rule set provider must pass.
 *
 * @example
 * describe('myRules', () =>
 *   ruleSetProviderContract(it, async () => {
 *     const storage = await createEmptyStorage()
 *     return { provider: myRules(storage), put: (document) => storage.write(document) }
 *   }))
 */
export function ruleSetProviderContract(it: TestRunner, create: ProviderFactory): void {
  const withProvider = (title: string, test: (place: ProviderFixture) => Promise<void>): void =>
    it(title, async () => {
      const place = await create()
      try {
        await test(place)
      } finally {
        await place.remove?.()
      }
    })

  withProvider('loads rule sets in order, parsed and with defaults', async ({ provider, put }) => {
    assert.ok(typeof provider.source === 'string' && provider.source !== '', 'The provider must have a source.')
    await put(withCapacity(10))
    const [api, web, ...others] = await provider.load()
    assert.deepEqual([api?.id, api?.strategy, web?.id, web?.strategy, web?.rules], ['api', 'first', 'web', 'all', []])
    assert.deepEqual(others, [])
    const { methods, when, path, limitScope, bands } = api?.rules[0] ?? assert.fail('The rule was not loaded.')
    assert.deepEqual([methods, when, path, limitScope], [['GET'], [], '/**', 'IP'])
    assert.deepEqual(bands, [
      {
        label: '10-per-1m',
        algorithm: 'TOKEN_BUCKET',
        refill: 'STEADY',
        capacity: 10,
        refillTokens: 10,
        windowTicks: 60_000_000,
      },
    ])
  })

  withProvider('loads the current rules without changing rules that were loaded before', async ({ provider, put }) => {
    await put(withCapacity(10))
    const before = await provider.load()
    assert.deepEqual(await provider.load(), before)
    await put(withCapacity(11))
    assert.equal(capacityOf(await provider.load()), 11)
    assert.equal(capacityOf(before), 10)
    await put({ ruleSets: [] })
    assert.deepEqual(await provider.load(), [])
  })

  withProvider('rejects invalid rules with their paths, until they are fixed', async ({ provider, put }) => {
    await put(withCapacity('ten'))
    const error = await provider.load().then(
      () => assert.fail('Invalid rules were loaded.'),
      (reason: unknown) => reason,
    )
    assert.ok(error instanceof FluxGateError, String(error))
    assert.equal(error.code, 'FLUXGATE_RULES_INVALID')
    assert.deepEqual(
      error.errors.map(({ path }) => path),
      ['ruleSets[0].rules[0].bands[0].capacity'],
    )
    await put(withCapacity(12))
    assert.equal(capacityOf(await provider.load()), 12)
  })

  withProvider('notifies a watcher of changes until it stops', async ({ provider, put }) => {
    if (provider.watch === undefined) return
    await put(withCapacity(1))
    await provider.load()
    let changes = 0
    const stop = provider.watch(
      () => {
        changes += 1
      },
      () => {},
    )
    // A watcher may start with a delay, so the rules are changed until it reports a change.
    for (let i = 2; changes === 0 && i < 1_000; i++) {
      await put(withCapacity(i))
      await pause()
    }
    stop()
    assert.ok(changes > 0, 'The watcher reported no change.')
    const before = changes
    await put(withCapacity(1_001))
    await pause()
    assert.equal(changes, before)
  })
}

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 50))
