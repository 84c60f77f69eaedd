import { describe, expect, it } from 'vitest'
import { finish } from '../../core/scheduling/steps.js'
import { ruleStoreContract } from '../../testing/index.js'
import { maxRulesPerSet } from '../schema/parse-rules.js'
import { createRuleStore } from './create-rule-store.js'
import { validateRuleSet } from './rule-document.js'
import type { ExistingRuleSet, NumberedEntry, RuleSetState, RuleStorage } from './rule-storage.js'

interface Shelf {
  readonly sets: Map<string, RuleSetState>
  readonly entries: Map<string, NumberedEntry[]>
}

const emptyShelf = (): Shelf => ({ sets: new Map(), entries: new Map() })

/** A minimal storage. Each call takes a turn of the event loop, so that concurrent edits conflict. */
function shelfStorage({ sets, entries }: Shelf): RuleStorage {
  const soon = () => new Promise<void>((resolve) => setImmediate(resolve))
  const nothing: RuleSetState = { version: 0, removedVersion: 0, rules: [] }
  return {
    source: 'a shelf',
    async read(ruleSetId) {
      await soon()
      return sets.get(ruleSetId) ?? nothing
    },
    async readAll() {
      await soon()
      return [...sets.values()].filter((stored): stored is ExistingRuleSet => stored.head !== undefined)
    },
    async commit({ ruleSetId, from, after, entry }) {
      await soon()
      if ((sets.get(ruleSetId) ?? nothing).version !== from) return false
      sets.set(ruleSetId, after)
      entries.set(ruleSetId, [{ setVersion: after.version, entry }, ...(entries.get(ruleSetId) ?? [])])
      return true
    },
    async history(ruleSetId, below, limit) {
      const found = entries.get(ruleSetId) ?? []
      return found.filter(({ setVersion }) => setVersion < below).slice(0, limit)
    },
    async close() {},
  }
}

describe('a rule store over a minimal storage', () => {
  ruleStoreContract(it, (clock) => {
    const shelf = emptyShelf()
    return { open: () => createRuleStore(shelfStorage(shelf), { clock }) }
  })
})

describe('an edit', () => {
  it('fails with a conflict if every attempt meets a concurrent change', async () => {
    const storage = shelfStorage(emptyShelf())
    const store = createRuleStore({ ...storage, commit: async () => false })
    await expect(store.putRuleSet({ id: 'api', rules: [] }, { by: 'ann' })).rejects.toMatchObject({
      code: 'FLUXGATE_RULES_CONFLICT',
      message: 'Rule set "api" was changed concurrently in each of 100 attempts. Nothing was changed: repeat the edit.',
    })
  })

  it('that fails does not block the next one', async () => {
    const storage = shelfStorage(emptyShelf())
    let isDown = true
    const commit: RuleStorage['commit'] = (change) =>
      isDown ? Promise.reject(new Error('down')) : storage.commit(change)
    const store = createRuleStore({ ...storage, commit })
    await expect(store.putRuleSet({ id: 'api', rules: [] }, { by: 'ann' })).rejects.toThrow('down')
    isDown = false
    expect((await store.putRuleSet({ id: 'api', rules: [] }, { by: 'ann' })).created).toBe(true)
  })

  it('reports the actual and the expected version', async () => {
    const store = createRuleStore(shelfStorage(emptyShelf()))
    const rule = { id: 'a', bands: [{ capacity: 1, window: '1s' }] }
    await store.putRuleSet({ id: 'api', rules: [rule] }, { by: 'ann' })
    await expect(store.putRule('api', { ...rule, name: 'x' }, { by: 'ann', ifVersion: 7 })).rejects.toThrow(
      'Rule "a" of "api" has version 1, but version 7 was expected. Nothing was changed: read it again and repeat the edit.',
    )
    await expect(store.putRuleSet({ id: 'api', rules: [] }, { by: 'ann', ifVersion: 0 })).rejects.toThrow(
      'Rule set "api" has version 1, but was expected not to exist. Nothing was changed: read it again and repeat the edit.',
    )
    await expect(store.deleteRule('api', 'b', { by: 'ann', ifVersion: 2 })).rejects.toThrow(
      'Rule "b" of "api" does not exist, but version 2 was expected. Nothing was changed: read it again and repeat the edit.',
    )
  })
})

describe('an edit of one rule that its set has no room for', () => {
  const globRule = (id: string, path: string) => ({ id, path, bands: [{ capacity: 1, window: '1s' }] })
  const globs = (count: number) => Array.from({ length: count }, (_, i) => globRule(`r${i}`, `/a/*x${i}*`))
  const edit = { by: 'ann' }

  it('is rejected like the whole set: at most a hundred similar globs are allowed', async () => {
    const store = createRuleStore(shelfStorage(emptyShelf()))
    await store.putRuleSet({ id: 'api', rules: globs(99) }, edit)
    expect((await store.putRule('api', globRule('last', '/a/*last*'), edit)).created).toBe(true)
    const message =
      'must be one of at most 100 similar globs; "*more*" exceeds the limit for globs with "?" or several "*" in the same position with the same start and end'
    await expect(store.putRule('api', globRule('more', '/a/*more*'), edit)).rejects.toMatchObject({
      code: 'FLUXGATE_RULES_INVALID',
      errors: [{ path: 'path', message }],
    })
    await expect(store.putRuleSet({ id: 'api', rules: [...globs(100), globRule('more', '/a/*more*')] }, edit))
      .rejects //
      .toMatchObject({ errors: [{ path: 'ruleSets[0].rules[100].path', message }] })
    expect((await store.getRuleSet('api'))?.version).toBe(2)
    await store.load()
  })

  it('is accepted if it replaces a glob, has a single star, or has another prefix', async () => {
    const store = createRuleStore(shelfStorage(emptyShelf()))
    await store.putRuleSet({ id: 'api', rules: globs(100) }, edit)
    await store.putRule('api', globRule('r7', '/a/*seven*'), edit)
    await store.putRule('api', globRule('same', '/a/*x8*'), edit)
    await store.putRule('api', globRule('single', '/a/*single'), edit)
    await store.putRule('api', globRule('elsewhere', '/b/*x1*'), edit)
    expect((await store.load())[0]?.rules).toHaveLength(103)
  })

  it('counts globs that differ in letter case once, unless case matters in the set', async () => {
    const store = createRuleStore(shelfStorage(emptyShelf()))
    for (const [id, caseSensitive] of [
      ['folded', false],
      ['exact', true],
    ] as const)
      await store.putRuleSet({ id, caseSensitive, rules: globs(100) }, edit)
    await store.putRule('folded', globRule('upper', '/a/*X1*'), edit)
    await expect(store.putRule('exact', globRule('upper', '/a/*X1*'), edit)).rejects.toThrow(
      'at most 100 similar globs',
    )
  })

  it('is rejected if there are as many rules as a set may have', async () => {
    const rules = Array.from({ length: maxRulesPerSet }, (_, i) => globRule(`r${i}`, '/a'))
    const stored = { version: 1, removedVersion: 0, head: { id: 'api' }, rules }
    const store = createRuleStore(shelfStorage({ ...emptyShelf(), sets: new Map([['api', stored]]) }))
    await expect(store.putRule('api', globRule('more', '/a'), edit)).rejects.toMatchObject({
      code: 'FLUXGATE_RULES_INVALID',
      errors: [
        {
          path: 'id',
          message: 'must not exceed the limit of 100000 rules in a rule set. Split it into several rule sets',
        },
      ],
    })
    expect((await store.putRule('api', globRule('r7', '/b'), edit)).created).toBe(false)
  })
})

it('a set may have thousands of rules, each with as many values as a single rule', () => {
  const rule = (id: string, n: number) => ({
    id,
    attributes: { list: Array.from({ length: n }, () => 0) },
    bands: [{ capacity: 1, window: '1s' }],
  })
  const many = { id: 'api', rules: Array.from({ length: 10_000 }, (_, i) => rule(`r${i}`, 10)) }
  expect(finish(validateRuleSet(many)).rules).toHaveLength(10_000)
  expect(() => finish(validateRuleSet({ id: 'api', rules: [rule('a', 10), rule('b', 100_000)] }))).toThrow(
    /rules\[1\]\.attributes\.list\[\d+\]: must be a JSON value; received more than 100000 values/,
  )
})
