/** Where FluxGate uses its own locks. */
import { describe, expect, it } from 'vitest'
import { redisRuleStore } from '../../src/app/redis-rule-store.js'
import { importRules } from '../../src/rules/store/copy-rules.js'
import { freshPrefix, sharedRedis } from '../servers/shared-redis.js'
import { closedAfterTest, openLock } from './lock-bed.js'

const bands = [{ capacity: 10, window: '1m' }]
const setsOf = (owner: string) => ({
  ruleSets: Array.from({ length: 15 }, (_, i) => ({ id: `${owner}-${i}`, rules: [{ id: 'all', bands }] })),
})
const open = (prefix: string) =>
  closedAfterTest(redisRuleStore(sharedRedis().uri, { prefix, channel: `${prefix}reload` }))

describe('imports into a rule store in Redis', () => {
  it('follow each other: of several at once, none fails, and one of them is there as a whole', async () => {
    const prefix = freshPrefix()
    const owners = ['ann', 'bob', 'cem', 'dee']
    await Promise.all(
      owners.map((owner) => importRules(setsOf(owner), open(prefix), { by: owner, removeOthers: true })),
    )
    const { items } = await open(prefix).listRuleSets({ limit: 100 })
    const ids = items.map(({ id }) => id)
    const [last = ''] = ids[0]?.split('-') ?? []
    expect(owners).toContain(last)
    expect(ids.sort()).toEqual(
      setsOf(last)
        .ruleSets.map(({ id }) => id)
        .sort(),
    )
  })

  it('stop before the next set when they can no longer rely on being alone', async () => {
    const prefix = freshPrefix()
    const store = open(prefix)
    const lock = openLock({ prefix })
    const stopped = store.alone?.(async (signal) => {
      await lock.forceUnlock('rules:import')
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      signal.throwIfAborted()
    })
    await expect(stopped).rejects.toMatchObject({ code: 'FLUXGATE_LOCK_LOST' })
  })
})
