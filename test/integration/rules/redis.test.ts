import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { redisRuleStore } from '../../../src/rules/redis/redis-rule-store.js'
import { ruleStoreContract } from '../../../src/testing/index.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'
import { checkIndexes } from './index-consistency.js'

let client: Redis
beforeAll(() => {
  client = new Redis(sharedRedis().uri)
})
afterAll(() => client.disconnect())

describe('a rule store in Redis', () => {
  ruleStoreContract(
    it,
    (clock) => {
      const prefix = freshPrefix()
      return {
        open: () => redisRuleStore(sharedRedis().uri, { prefix, channel: `${prefix}reload`, clock }),
        remove: async () => checkIndexes(client, prefix),
      }
    },
    { notices: true, edits: 500 },
  )
})

describe('a rule store over a client of the caller', () => {
  ruleStoreContract(
    it,
    (clock) => {
      const prefix = freshPrefix()
      return { open: () => redisRuleStore(client, { prefix, channel: `${prefix}reload`, clock }) }
    },
    { notices: true },
  )

  it('does not close it', async () => {
    await redisRuleStore(client, { prefix: freshPrefix() }).close()
    expect(await client.ping()).toBe('PONG')
  })
})

describe('rules in Redis', () => {
  const by = 'ann'
  const rule = (id: string, more: object = {}) => ({ id, bands: [{ capacity: 10, window: '1m' }], ...more })

  it('are found in text beyond the indexed part', async () => {
    const prefix = freshPrefix()
    const store = redisRuleStore(client, { prefix })
    const many = Array.from({ length: 5_000 }, (_, i) => i.toString(36)).join(' ')
    const rules = [rule('long', { description: `${many} Needle` }), rule('short', { name: 'needle' }), rule('other')]
    await store.putRuleSet({ id: 'api', rules }, { by })
    const found = async (q: string) => (await store.listRules('api', { limit: 10, q })).items.map(({ id }) => id)
    expect(await found('NEEDLE')).toEqual(['long', 'short'])
    expect(await found('needles')).toEqual([])
    expect(await found('other')).toEqual(['other'])
    await checkIndexes(client, prefix)
    expect(Number(await client.zcard(`${prefix}:{${prefix}:rules}:texts:api`))).toBeLessThan(50)
  })

  it('are found only if all fragments occur together', async () => {
    const store = redisRuleStore(client, { prefix: freshPrefix() })
    const names = Array.from({ length: 60 }, (_, i) =>
      rule(`r${i}`, { name: i % 20 === 19 ? 'abcdef' : 'abcd bcdef cde' }),
    )
    await store.putRuleSet({ id: 'api', rules: names }, { by })
    const first = await store.listRules('api', { limit: 2, q: 'abcdef' })
    expect(first.items.map(({ id }) => id)).toEqual(['r19', 'r39'])
    const second = await store.listRules('api', { limit: 2, q: 'abcdef', cursor: String(first.cursor) })
    expect(second).toEqual({ items: [expect.objectContaining({ id: 'r59' })], cursor: null })
  })

  it('are written and read in parts if there are many, and every change is atomic', async () => {
    const prefix = freshPrefix()
    const store = redisRuleStore(client, { prefix })
    const many = (count: number, name: string) =>
      Array.from({ length: count }, (_, i) => rule(`r${i}`, { name, path: `/p${i}`, enabled: i % 2 === 0 }))
    const { document } = await store.putRuleSet({ id: 'api', rules: many(1_500, 'first') }, { by })
    expect(document.rules).toHaveLength(1_500)
    const [loaded] = await store.load()
    expect(loaded?.rules).toHaveLength(1_500)
    await checkIndexes(client, prefix)
    // An editor that has seen another version writes nothing.
    await expect(
      store.putRuleSet({ id: 'api', rules: many(1_400, 'late') }, { by, ifVersion: 7 }),
    ).rejects.toMatchObject({
      code: 'FLUXGATE_RULES_CONFLICT',
    })
    await Promise.all([
      store.putRuleSet({ id: 'api', strategy: 'first', rules: many(1_200, 'second') }, { by }),
      redisRuleStore(client, { prefix }).putRule('api', rule('alone'), { by }),
    ])
    const after = await store.getRuleSet('api')
    expect(after?.strategy).toBe('first')
    expect(after?.version).toBe(3)
    expect(after?.rules.filter(({ name }) => name === 'second')).toHaveLength(1_200)
    const found = await store.listRules('api', { limit: 5, q: '/P1199' })
    expect(found.items.map(({ id }) => id)).toEqual(['r1199'])
    await checkIndexes(client, prefix)
    await store.putRuleSet({ id: 'api', rules: [] }, { by })
    expect((await store.getRuleSet('api'))?.rules).toEqual([])
    expect(await client.keys(`${prefix}*staged*`)).toEqual([])
    await store.close()
  })

  it('can be opened from configuration settings', async () => {
    const prefix = freshPrefix()
    const store = redisRuleStore(client, { prefix })
    await store.putRuleSet({ id: 'api', rules: [rule('a')] }, { by })
    const gate = await createFluxGate({ rules: { type: 'redis', uri: sharedRedis().uri, prefix, channel: prefix } })
    expect((await gate.check({})).ruleId).toBe('a')
    expect((await gate.health()).rules).toMatchObject({ source: `Redis (${prefix})`, reload: 'PUBSUB' })
    await gate.close()
    await expect(createFluxGate({ rules: { type: 'sqlite' } as never })).rejects.toThrow(
      'rules.type must be file, redis or mongo',
    )
    await expect(createFluxGate({ rules: { type: 'redis', uri: 'http://x' } })).rejects.toMatchObject({
      code: 'FLUXGATE_CONFIG_INVALID',
    })
  })

  it('that cannot be written report why, and nothing is written', async () => {
    const prefix = freshPrefix()
    const store = redisRuleStore(client, { prefix })
    await client.set(`${prefix}:{${prefix}:rules}:ranks:api`, 'x')
    await expect(store.putRuleSet({ id: 'api', rules: [rule('a')] }, { by })).rejects.toMatchObject({
      code: 'FLUXGATE_RULES_UNREADABLE',
      message: expect.stringContaining(`ranks:api holds a string`),
    })
    expect(await store.getRuleSet('api')).toBeUndefined()
    expect(await client.keys(`${prefix}*`)).toHaveLength(1)
  })

  it.each([{ prefix: 'a b' }, { channel: 1 }, { maxHistory: 0 }, { timeoutMs: 0 }, { chanel: 'x' }])(
    'are not opened with %o',
    (options) => {
      expect(() => redisRuleStore(client, options as never)).toThrow(
        expect.objectContaining({ code: 'FLUXGATE_CONFIG_INVALID' }),
      )
    },
  )

  it('keep the configured length of history', async () => {
    const store = redisRuleStore(client, { prefix: freshPrefix(), maxHistory: 3 })
    await store.putRuleSet({ id: 'api', rules: [] }, { by })
    for (let i = 0; i < 5; i++) await store.putRule('api', rule('a', { name: `n${i}` }), { by })
    const { items } = await store.history('api', { limit: 10 })
    expect(items.map(({ version }) => version)).toEqual([5, 4, 3])
  })
})
