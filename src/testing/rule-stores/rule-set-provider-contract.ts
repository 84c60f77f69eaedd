/**
 * What every provider of rule sets promises, as tests. Give it the runner's `it` and a way to make a provider over a place
 * whose rules the tests can change:
 *
 *   describe('myRules', () => ruleSetProviderContract(it, async () => {
 *     const where = await somewhereEmpty()
 *     return { provider: myRules(where), put: (document) => where.write(document) }
 *   }))
 */
import assert from 'node:assert/strict'
import { FluxGateError } from '../../core/errors.js'
import type { RuleSet } from '../../core/rule.js'
import type { RuleSetProvider } from '../../core/rule-set-provider.js'
import type { TestRunner } from '../bucket-store-contract.js'

export interface ProviderPlace {
  readonly provider: RuleSetProvider
  /** Makes these the rules that are kept there: `{ ruleSets: [...] }`, as a rules file has them, mistakes included. */
  put(document: unknown): void | Promise<void>
  /** Called after the test, when nothing watches any more. */
  remove?(): void | Promise<void>
}

export type ProviderPlaceFactory = () => ProviderPlace | Promise<ProviderPlace>

const withCapacity = (capacity: unknown) => ({
  ruleSets: [
    { id: 'api', strategy: 'first', rules: [{ id: 'a', method: 'get', bands: [{ capacity, window: '1m' }] }] },
    { id: 'web', rules: [] },
  ],
})
const capacityOf = (ruleSets: readonly RuleSet[]): number | undefined => ruleSets[0]?.rules[0]?.bands[0]?.capacity

export function ruleSetProviderContract(it: TestRunner, create: ProviderPlaceFactory): void {
  const withPlace = (title: string, test: (place: ProviderPlace) => Promise<void>): void =>
    it(title, async () => {
      const place = await create()
      try {
        await test(place)
      } finally {
        await place.remove?.()
      }
    })

  withPlace('rule sets are loaded in their order, read, and with everything filled in', async ({ provider, put }) => {
    assert.ok(typeof provider.source === 'string' && provider.source !== '', 'a provider has a source')
    await put(withCapacity(10))
    const [api, web, ...others] = await provider.load()
    assert.deepEqual([api?.id, api?.strategy, web?.id, web?.strategy, web?.rules], ['api', 'first', 'web', 'all', []])
    assert.deepEqual(others, [])
    const { methods, when, path, limitScope, bands } = api?.rules[0] ?? assert.fail('the rule is loaded')
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

  withPlace('a load gives what is kept now, and what was loaded before stays as it was', async ({ provider, put }) => {
    await put(withCapacity(10))
    const before = await provider.load()
    assert.deepEqual(await provider.load(), before)
    await put(withCapacity(11))
    assert.equal(capacityOf(await provider.load()), 11)
    assert.equal(capacityOf(before), 10)
    await put({ ruleSets: [] })
    assert.deepEqual(await provider.load(), [])
  })

  withPlace('rules with mistakes are refused with their places, until they are mended', async ({ provider, put }) => {
    await put(withCapacity('ten'))
    const error = await provider.load().then(
      () => assert.fail('mistakes were loaded'),
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

  withPlace('a provider that watches tells of a change, until nobody watches', async ({ provider, put }) => {
    if (provider.watch === undefined) return
    await put(withCapacity(1))
    await provider.load()
    let noticed = 0
    const stop = provider.watch(
      () => {
        noticed += 1
      },
      () => {},
    )
    // A watcher may need a moment before it sees anything, so the changes go on until one is seen.
    for (let i = 2; noticed === 0 && i < 1_000; i++) {
      await put(withCapacity(i))
      await pause()
    }
    stop()
    assert.ok(noticed > 0, 'no change was noticed')
    const until = noticed
    await put(withCapacity(1_001))
    await pause()
    assert.equal(noticed, until)
  })
}

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 50))
