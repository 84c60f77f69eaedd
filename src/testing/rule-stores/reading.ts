import assert from 'node:assert/strict'
import { by, field, pagesOf, rejects, rule, type WithRuleStore } from './fixtures.js'

/** The part of the rule store contract about reading: by id, in pages, by text, and in the history. */
export function readingContract(withPlace: WithRuleStore): void {
  withPlace('has no rule sets, rules or history at first', async ({ store }) => {
    assert.deepEqual(await store.load(), [])
    assert.deepEqual(await store.listRuleSets({ limit: 10 }), { items: [], cursor: null })
    assert.equal(await store.getRuleSet('api'), undefined)
    assert.equal(await store.getRule('api', 'a'), undefined)
    assert.deepEqual(await store.history('api', { limit: 10 }), { items: [], cursor: null })
    assert.equal(await store.deleteRuleSet('api', { by }), false)
    await rejects(store.listRules('api', { limit: 10 }), 'FLUXGATE_RULE_SET_UNKNOWN')
    await rejects(store.putRule('api', rule('a'), { by }), 'FLUXGATE_RULE_SET_UNKNOWN')
    await rejects(store.deleteRule('api', 'a', { by }), 'FLUXGATE_RULE_SET_UNKNOWN')
  })

  withPlace('distinguishes similar ids of rules and sets', async ({ store }) => {
    const ids = ['a', 'A', 'a:b', 'a.b', 'a-b', 'a_b', 'a:', ':a', 'constructor', '__proto__', '1', 'x'.repeat(128)]
    for (const id of ids) await store.putRuleSet({ id, rules: ids.map((one) => rule(one, { name: id })) }, { by })
    for (const id of ids) {
      assert.equal((await store.getRuleSet(id))?.rules.length, ids.length)
      for (const one of ids) assert.equal((await store.getRule(id, one))?.name, id)
    }
    await store.deleteRuleSet('a', { by })
    await store.deleteRule('a:b', 'a', { by })
    assert.equal((await store.load()).length, ids.length - 1)
    assert.equal((await store.getRuleSet('a:b'))?.rules.length, ids.length - 1)
    assert.equal((await store.getRuleSet('a.b'))?.rules.length, ids.length)
  })

  withPlace('lists rules in pages by descending priority, ties by id', async ({ store }) => {
    const priorities = { m: 5, a: 0, z: 5, B: 0, last: -1_000_000_000, first: 1_000_000_000, k: -1 }
    const rules = Object.entries(priorities).map(([id, priority]) => rule(id, { priority }))
    await store.putRuleSet({ id: 'api', rules }, { by })
    const inOrder = ['first', 'm', 'z', 'B', 'a', 'k', 'last']
    assert.deepEqual(
      (await store.getRuleSet('api'))?.rules.map(({ id }) => id),
      inOrder,
    )
    for (const limit of [1, 2, 3, 7, 100]) {
      const pages = await pagesOf((query) => store.listRules('api', query), limit)
      assert.deepEqual(
        pages.flat().map(({ id }) => id),
        inOrder,
      )
      assert.equal(pages.length, Math.ceil(7 / limit))
    }
  })

  withPlace('finds rules by text, ignoring case, and by whether they are enabled', async ({ store }) => {
    const rules = [
      rule('login', { path: '/auth/Login', description: 'Slows down guessing' }),
      rule('search', { name: 'Suche & Überblick', enabled: false }),
      rule('korea', { name: '한국어 검색' }),
      rule('emoji', { description: 'party 🎉 time', enabled: true }),
    ]
    await store.putRuleSet({ id: 'api', rules }, { by })
    const found = async (q: string | undefined, enabled?: boolean): Promise<string[]> =>
      (await pagesOf((page) => store.listRules('api', { ...page, q, enabled }), 2)).flat().map(({ id }) => id)
    assert.deepEqual(await found('LOGIN'), ['login'])
    assert.deepEqual(await found('/auth/'), ['login'])
    assert.deepEqual(await found('übERblick'), ['search'])
    assert.deepEqual(await found('국어'), ['korea'])
    assert.deepEqual(await found('🎉'), ['emoji'])
    assert.deepEqual(await found('e'), ['emoji', 'korea', 'login', 'search'])
    assert.deepEqual(await found('e', true), ['emoji', 'korea', 'login'])
    assert.deepEqual(await found(undefined, false), ['search'])
    assert.deepEqual(await found(''), ['emoji', 'korea', 'login', 'search'])
    assert.deepEqual(await found('down guess'), ['login'])
    assert.deepEqual(await found('*'), [])
    await store.putRule('api', rule('login', { path: '/sign-in' }), { by })
    assert.deepEqual(await found('auth'), [])
    assert.deepEqual(await found('sign'), ['login'])
  })

  withPlace('lists rule sets in pages by id', async ({ store }) => {
    for (const id of ['b', 'a', 'c', 'B', 'a:1']) await store.putRuleSet({ id, rules: [rule(id)] }, { by })
    for (const limit of [1, 2, 5]) {
      const pages = await pagesOf((query) => store.listRuleSets(query), limit)
      assert.deepEqual(
        pages.flat().map(({ id }) => id),
        ['B', 'a', 'a:1', 'b', 'c'],
      )
      assert.equal(pages.flat()[1]?.rules[0]?.version, 1)
    }
  })

  withPlace('rejects invalid cursors and limits', async ({ store }) => {
    await store.putRuleSet({ id: 'api', rules: [rule('a')] }, { by })
    for (const cursor of ['', 'x', 'bnVsbA', '"', '한국', 'x'.repeat(10_000)]) {
      await rejects(store.listRules('api', { limit: 1, cursor }), 'FLUXGATE_ARGUMENT_INVALID')
      await rejects(store.listRuleSets({ limit: 1, cursor }), 'FLUXGATE_ARGUMENT_INVALID')
      await rejects(store.history('api', { limit: 1, cursor }), 'FLUXGATE_ARGUMENT_INVALID')
    }
    for (const limit of [0, -1, 1.5, Number.NaN, 1_001])
      await rejects(store.listRules('api', { limit }), 'FLUXGATE_ARGUMENT_INVALID')
    const missing = undefined as unknown as { limit: number }
    await rejects(store.listRules('api', missing), 'FLUXGATE_ARGUMENT_INVALID')
    await rejects(store.listRuleSets(missing), 'FLUXGATE_ARGUMENT_INVALID')
    await rejects(store.history('api', missing), 'FLUXGATE_ARGUMENT_INVALID')
  })

  withPlace('records author, time and content of every change, newest first', async ({ store, clock, open }) => {
    await store.putRuleSet({ id: 'api', rules: [rule('a')] }, { by: 'ann' })
    clock.advance(1_000)
    await store.putRule('api', rule('a', { name: 'x' }), { by: 'bob' })
    await store.deleteRule('api', 'a', { by: 'cat' })
    await store.deleteRuleSet('api', { by: 'dan' })
    const other = await open()
    const pages = await pagesOf((query) => other.history('api', query), 3)
    assert.deepEqual(
      pages.map(({ length }) => length),
      [3, 1],
    )
    const entries = pages.flat()
    assert.deepEqual(
      entries.map((entry) => [entry.at, entry.by, entry.action, entry.ruleSetId, entry.ruleId, entry.version]),
      [
        ['2026-01-31T12:00:01.000Z', 'dan', 'DELETE_SET', 'api', null, 4],
        ['2026-01-31T12:00:01.000Z', 'cat', 'DELETE_RULE', 'api', 'a', 3],
        ['2026-01-31T12:00:01.000Z', 'bob', 'PUT_RULE', 'api', 'a', 2],
        ['2026-01-31T12:00:00.000Z', 'ann', 'PUT_SET', 'api', null, 1],
      ],
    )
    const [removedSet, removed, edited, created] = entries
    assert.deepEqual(created?.before, null)
    assert.deepEqual(field(created?.after, 'rules'), [edited?.before])
    assert.deepEqual([field(edited?.before, 'name'), field(edited?.after, 'name')], [undefined, 'x'])
    assert.deepEqual(removed?.before, edited?.after)
    assert.deepEqual([removed?.after, removedSet?.after], [null, null])
    assert.deepEqual((await store.history('web', { limit: 10 })).items, [])
  })
}
