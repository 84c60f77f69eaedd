import assert from 'node:assert/strict'
import { by, issuesOf, rejects, rule, type WithRuleStore } from './fixtures.js'

/** The part of the rule store contract about edits. */
export function editingContract(withPlace: WithRuleStore): void {
  withPlace('stores a rule set unchanged and adds versions and timestamps', async ({ store, open }) => {
    const rules = [rule('a', { name: 'A', priority: 5 }), rule('b', { enabled: false })]
    const put = await store.putRuleSet(
      { id: 'api', description: 'The API', strategy: 'first', caseSensitive: true, rules },
      { by },
    )
    const at = '2026-01-31T12:00:00.000Z'
    const stamps = { createdAt: at, updatedAt: at, version: 1 }
    assert.deepEqual(put, {
      created: true,
      document: {
        id: 'api',
        description: 'The API',
        strategy: 'first',
        caseSensitive: true,
        version: 1,
        rules: rules.map((one) => ({ ...one, ...stamps })),
      },
    })
    for (const reader of [store, await open()]) {
      assert.deepEqual(await reader.getRuleSet('api'), put.document)
      assert.deepEqual(await reader.getRule('api', 'a'), { ...rules[0], ...stamps })
      assert.equal(await reader.getRule('api', 'c'), undefined)
      const [loaded] = await reader.load()
      assert.deepEqual(
        [loaded?.id, loaded?.strategy, loaded?.caseSensitive, loaded?.rules.map(({ id }) => id)],
        ['api', 'first', true, ['a', 'b']],
      )
    }
  })

  withPlace('keeps a candidate alongside its rule set', async ({ store, open }) => {
    await store.putRuleSet({ id: 'api', rules: [rule('a')] }, { by })
    const candidate = { id: 'api.candidate', candidateOf: 'api', rules: [rule('a', { priority: 1 })] }
    await store.putRuleSet(candidate, { by })
    const reader = await open()
    assert.equal((await reader.getRuleSet('api.candidate'))?.candidateOf, 'api')
    const loaded = await reader.load()
    assert.deepEqual(
      loaded.map(({ id, candidateOf }) => [id, candidateOf]),
      [
        ['api', undefined],
        ['api.candidate', 'api'],
      ],
    )
    await rejects(store.putRuleSet({ ...candidate, id: 'web' }, { by }), 'FLUXGATE_RULES_INVALID')
    assert.equal(await store.deleteRuleSet('api.candidate', { by }), true)
    assert.equal((await reader.load()).length, 1)
  })

  withPlace('increments only the versions of the edited rule and its set', async ({ store, clock }) => {
    await store.putRuleSet({ id: 'api', rules: [rule('a'), rule('b')] }, { by })
    await store.putRuleSet({ id: 'web', rules: [rule('a')] }, { by })
    clock.advance(1_500)
    const { document, created } = await store.putRule('api', rule('a', { name: 'new' }), { by })
    assert.equal(created, false)
    assert.deepEqual(document, {
      ...rule('a', { name: 'new' }),
      createdAt: '2026-01-31T12:00:00.000Z',
      updatedAt: '2026-01-31T12:00:01.500Z',
      version: 2,
    })
    assert.equal((await store.getRuleSet('api'))?.version, 2)
    assert.equal((await store.getRule('api', 'b'))?.version, 1)
    assert.equal((await store.getRuleSet('web'))?.version, 1)
    assert.equal((await store.putRule('api', rule('c'), { by })).created, true)
    assert.equal((await store.getRuleSet('api'))?.version, 3)
  })

  withPlace('keeps unchanged rules and their versions when a set is replaced', async ({ store, clock }) => {
    const [a, b, c, d] = [rule('a'), rule('b'), rule('c'), rule('d')]
    await store.putRuleSet({ id: 'api', description: 'x', rules: [a, b, c] }, { by })
    const before = await store.getRule('api', 'a')
    clock.advance(1_000)
    const changed = rule('b', { mode: 'SHADOW' })
    const { document, created } = await store.putRuleSet({ id: 'api', rules: [d, a, changed] }, { by })
    assert.equal(created, false)
    assert.deepEqual([document.version, document.description], [2, undefined])
    assert.deepEqual(
      document.rules.map(({ id, version }) => [id, version]),
      [
        ['a', 1],
        ['b', 2],
        ['d', 1],
      ],
    )
    assert.deepEqual(document.rules[0], before)
  })

  withPlace('writes nothing for an edit that changes nothing', async ({ store, clock }) => {
    await store.putRuleSet({ id: 'api', rules: [rule('a')] }, { by })
    clock.advance(1_000)
    const before = (await store.getRuleSet('api')) ?? assert.fail()
    // As a client that sends back the document it has received.
    assert.deepEqual((await store.putRuleSet(before, { by })).document, before)
    assert.deepEqual((await store.putRule('api', before.rules[0], { by })).document, before.rules[0])
    assert.equal((await store.history('api', { limit: 10 })).items.length, 1)
  })

  withPlace('rejects the second of two edits that are based on the same version', async ({ store, open }) => {
    const other = await open()
    await store.putRuleSet({ id: 'api', rules: [rule('a')] }, { by, ifVersion: 0 })
    await store.putRule('api', rule('a', { name: 'first' }), { by, ifVersion: 1 })
    await rejects(other.putRule('api', rule('a', { name: 'second' }), { by, ifVersion: 1 }), 'FLUXGATE_RULES_CONFLICT')
    await rejects(other.deleteRule('api', 'a', { by, ifVersion: 1 }), 'FLUXGATE_RULES_CONFLICT')
    await rejects(other.putRuleSet({ id: 'api', rules: [] }, { by, ifVersion: 1 }), 'FLUXGATE_RULES_CONFLICT')
    await rejects(other.deleteRuleSet('api', { by, ifVersion: 1 }), 'FLUXGATE_RULES_CONFLICT')
    assert.equal((await other.getRule('api', 'a'))?.name, 'first')
    assert.equal((await other.getRuleSet('api'))?.version, 2)
    await other.putRule('api', rule('a', { name: 'third' }), { by, ifVersion: 2 })
    assert.equal((await store.getRule('api', 'a'))?.version, 3)
  })

  withPlace('rejects an edit without an author or with an invalid version', async ({ store }) => {
    await store.putRuleSet({ id: 'api', rules: [rule('a')] }, { by })
    for (const invalid of [
      undefined,
      {},
      { by: '' },
      { by: 7 },
      ...[-1, 1.5, '1', null].map((ifVersion) => ({ by, ifVersion })),
    ]) {
      const edit = invalid as { by: string }
      await rejects(store.putRuleSet({ id: 'api', rules: [] }, edit), 'FLUXGATE_ARGUMENT_INVALID')
      await rejects(store.deleteRuleSet('api', edit), 'FLUXGATE_ARGUMENT_INVALID')
      await rejects(store.putRule('api', rule('b'), edit), 'FLUXGATE_ARGUMENT_INVALID')
      await rejects(store.deleteRule('api', 'a', edit), 'FLUXGATE_ARGUMENT_INVALID')
    }
    assert.equal((await store.getRuleSet('api'))?.version, 1)
  })

  withPlace('treats version 0 as "must not exist yet"', async ({ store }) => {
    await store.putRuleSet({ id: 'api', rules: [rule('a')] }, { by, ifVersion: 0 })
    await rejects(store.putRuleSet({ id: 'api', rules: [] }, { by, ifVersion: 0 }), 'FLUXGATE_RULES_CONFLICT')
    await rejects(store.putRule('api', rule('a', { name: 'x' }), { by, ifVersion: 0 }), 'FLUXGATE_RULES_CONFLICT')
    await store.putRule('api', rule('b'), { by, ifVersion: 0 })
    await rejects(store.putRule('api', rule('c'), { by, ifVersion: 1 }), 'FLUXGATE_RULES_CONFLICT')
    await rejects(store.deleteRule('api', 'c', { by, ifVersion: 1 }), 'FLUXGATE_RULES_CONFLICT')
  })

  withPlace('never reuses a version after a rule or set was deleted and created again', async ({ store }) => {
    await store.putRuleSet({ id: 'api', rules: [rule('a'), rule('b')] }, { by })
    await store.putRule('api', rule('a', { name: 'x' }), { by })
    assert.equal(await store.deleteRule('api', 'a', { by, ifVersion: 2 }), true)
    assert.equal(await store.deleteRule('api', 'a', { by }), false)
    assert.equal(await store.getRule('api', 'a'), undefined)
    assert.equal((await store.putRule('api', rule('a'), { by })).document.version, 4)
    const { version = 0 } = (await store.getRuleSet('api')) ?? {}
    assert.equal(version, 4)
    assert.equal(await store.deleteRuleSet('api', { by, ifVersion: 4 }), true)
    assert.equal(await store.getRuleSet('api'), undefined)
    assert.deepEqual(await store.load(), [])
    const again = await store.putRuleSet({ id: 'api', rules: [rule('a')] }, { by, ifVersion: 0 })
    assert.deepEqual([again.created, again.document.version, again.document.rules[0]?.version], [true, 6, 6])
  })

  withPlace('loses no edit of ten concurrent editors in two stores', async ({ store, open }) => {
    const stores = [store, await open()]
    await store.putRuleSet({ id: 'api', rules: [] }, { by })
    const edits = Array.from({ length: 10 }, (_, i) => stores[i % 2]?.putRule('api', rule(`r${i}`), { by }))
    await Promise.all(edits)
    const after = await store.getRuleSet('api')
    assert.equal(after?.rules.length, 10)
    assert.equal(after.version, 11)
    assert.equal((await store.history('api', { limit: 100 })).items.length, 11)
  })

  withPlace(
    'accepts exactly one of ten concurrent edits that are based on the same version',
    async ({ store, open }) => {
      const stores = [store, await open()]
      await store.putRuleSet({ id: 'api', rules: [rule('a')] }, { by })
      const edits = Array.from({ length: 10 }, (_, i) =>
        stores[i % 2]?.putRule('api', rule('a', { name: `n${i}` }), { by, ifVersion: 1 }),
      )
      const results = await Promise.allSettled(edits)
      const winners = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value?.document.name] : []))
      assert.equal(winners.length, 1)
      assert.equal((await store.getRule('api', 'a'))?.name, winners[0])
      for (const result of results)
        if (result.status === 'rejected') assert.equal(result.reason.code, 'FLUXGATE_RULES_CONFLICT')
    },
  )

  withPlace('returns copies, which the caller may change and put back', async ({ store }) => {
    const read = async (): Promise<Record<string, unknown>> => ({ ...(await store.getRule('api', 'a')) })
    const { document } = await store.putRuleSet({ id: 'api', rules: [rule('a', { attributes: { n: [1] } })] }, { by })
    const own = (await store.getRule('api', 'a')) as { attributes: { n: number[] } } | undefined
    own?.attributes.n.push(2)
    assert.deepEqual((await read()).attributes, { n: [1] })
    ;(document.rules as unknown[]).length = 0
    const put = await store.putRule('api', own, { by })
    assert.deepEqual((await read()).attributes, { n: [1, 2] })
    assert.equal(put.document.version, 2)
    ;(put.document.attributes as { n: number[] }).n.push(3)
    for (const { rules } of (await store.listRuleSets({ limit: 1 })).items) Object.assign(rules[0] ?? {}, { name: 'x' })
    for (const found of (await store.listRules('api', { limit: 1 })).items) Object.assign(found, { name: 'x' })
    assert.deepEqual((await read()).attributes, { n: [1, 2] })
    assert.equal((await read()).name, undefined)
  })

  withPlace('lists all validation issues with their paths and writes nothing', async ({ store }) => {
    await store.putRuleSet({ id: 'api', rules: [rule('a')] }, { by })
    const broken = { id: 'b', bands: [{ capacity: -1, window: '1m' }], colour: 'red' }
    assert.deepEqual(await issuesOf(store.putRule('api', broken, { by })), ['colour', 'bands[0].capacity'])
    assert.deepEqual(await issuesOf(store.putRule('api', 'text', { by })), ['document'])
    assert.deepEqual(await issuesOf(store.putRuleSet({ id: 'api', rules: [rule('x'), broken] }, { by })), [
      'ruleSets[0].rules[1].colour',
      'ruleSets[0].rules[1].bands[0].capacity',
    ])
    assert.deepEqual(await issuesOf(store.putRuleSet({ id: 'a/b', rules: [] }, { by })), ['ruleSets[0].id'])
    assert.deepEqual(await issuesOf(store.putRuleSet(null, { by })), ['ruleSets[0]'])
    assert.deepEqual(await issuesOf(store.putRule('api', rule('b', { attributes: { at: new Date(0) } }), { by })), [
      'attributes.at',
    ])
    assert.deepEqual(
      (await store.getRuleSet('api'))?.rules.map(({ id }) => id),
      ['a'],
    )
    assert.equal((await store.history('api', { limit: 10 })).items.length, 1)
  })
}
