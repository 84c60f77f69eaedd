import assert from 'node:assert/strict'
import { jsonText, parseJson } from '../../core/json/source-text.js'
import { by, field, rule, type WithRuleStore } from './fixtures.js'

/** The part of the rule store contract about attributes, which are preserved byte for byte. */
export function attributesContract(withPlace: WithRuleStore): void {
  withPlace('preserves attributes when other members are edited', async ({ store, open }) => {
    const text = JSON.stringify(attributes)
    const check = async (what: string): Promise<void> => {
      for (const reader of [store, await open()]) {
        const found = await reader.getRule('api', 'a')
        assert.equal(JSON.stringify(found?.attributes), text, what)
        const [loaded] = await reader.load()
        assert.equal(JSON.stringify(loaded?.rules.find(({ id }) => id === 'a')?.attributes), text, what)
      }
    }
    await store.putRuleSet({ id: 'api', rules: [rule('a', { attributes }), rule('b', { attributes: {} })] }, { by })
    await check('put with its set')
    await store.putRule('api', rule('b', { name: 'x', attributes: { b: [] } }), { by })
    await check('another rule edited')
    const { version: _, ...own } = (await store.getRule('api', 'a')) ?? assert.fail()
    await store.putRule('api', { ...own, name: 'new', priority: 3 }, { by })
    await check('the rule edited')
    const set = (await store.getRuleSet('api')) ?? assert.fail()
    await store.putRuleSet({ ...set, description: 'new', rules: [...set.rules, rule('c')] }, { by })
    await check('the set replaced')
    await store.deleteRule('api', 'b', { by })
    await check('another rule removed')
    const [entry] = (await store.history('api', { limit: 1 })).items
    assert.equal(JSON.stringify(field(entry?.before, 'attributes')), '{"b":[]}')
  })

  withPlace('preserves attributes byte for byte', async ({ store, open }) => {
    const source = '{"b": 1.0,"10":12345678901234567890,"2":"\\u00e9\\/", "a":1e400,"list":[ 1.50 ],"none":-0}'
    const check = async (what: string): Promise<void> => {
      for (const reader of [store, await open()])
        for (const found of [await reader.getRule('api', 'a'), (await reader.getRuleSet('api'))?.rules[0]])
          assert.equal(jsonText(found?.attributes), source, what)
    }
    const ruleOf = (name: string, text: string): unknown =>
      parseJson(`{"id":"a","name":"${name}","attributes":${text},"bands":[{"capacity":10,"window":"1m"}]}`)
    await store.putRuleSet({ id: 'api', rules: [ruleOf('first', source), rule('b')] }, { by })
    await check('put with its set')
    const own = (await store.getRule('api', 'a')) ?? assert.fail()
    await store.putRule('api', { ...own, name: 'second' }, { by })
    await store.putRule('api', rule('b', { priority: -1 }), { by })
    await check('edited')
    await store.putRule('api', ruleOf('second', '{"b":1,"c":2}'), { by })
    assert.equal(jsonText((await store.getRule('api', 'a'))?.attributes), '{"b":1,"c":2}')
    const [entry] = (await store.history('api', { limit: 1 })).items
    assert.equal(jsonText(field(entry?.before, 'attributes')), source, 'history')
    const { version } = (await store.getRule('api', 'a')) ?? assert.fail()
    const { document } = await store.putRule('api', ruleOf('second', '{"b":1.0,"c":2}'), { by })
    assert.equal(document.version, Number(version) + 1, 'A different source text is a change.')
    assert.equal((await store.getRule('api', 'a'))?.version, document.version)
    await store.putRule('api', ruleOf('second', source), { by })
    await check('written again')
    const page = await store.listRules('api', { limit: 10, q: 'second' })
    assert.equal(jsonText(page.items[0]?.attributes), source, 'searched')
    const [loaded] = await (await open()).load()
    assert.deepEqual(loaded?.rules.find(({ id }) => id === 'a')?.attributes, JSON.parse(source))
  })
}

/** Values that are easily lost: member order, names with a meaning in JavaScript or a database, numbers, and all scripts. */
const attributes: unknown = JSON.parse(
  `{"zulu":1,"alpha":{"__proto__":{"polluted":true},"constructor":"x","$set":{"a.b":1},"":"empty"},
  "numbers":[0,-1,1.5,0.1,1e21,1e-7,9007199254740991,-9007199254740991,4294967296,1.7976931348623157e308,5e-324],
  "texts":["","한국어","🎉\\u0000\\u001f\\u2028","\\ud800 alone"," leading and trailing ","yes","null","0x10","1_000","# no","- a"],
  "lists":[[],[[]],{},[{"a":[null,true,false]}]],"id":"not the rule's","version":"mine","__proto__":"own","last":null}`,
)
