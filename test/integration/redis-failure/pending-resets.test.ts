/** If a rule is removed during an outage, its buckets are reset once the store recovers, and health reports it until then. */
import { expect, it, onTestFinished } from 'vitest'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { eventually } from '../../fixtures/eventually.js'
import { stopAfterTest } from '../../fixtures/stop-after-test.js'
import { temporaryRules } from '../../fixtures/temporary-rules.js'
import { serverWith } from '../../fixtures/test-server.js'
import { startRedis } from '../../servers/redis-server.js'
import { startProxy } from '../../servers/tcp-proxy.js'

it('resets the buckets of a rule removed during an outage after recovery, and reports the pending reset in health', async () => {
  const redis = await stopAfterTest(startRedis())
  const proxy = await stopAfterTest(startProxy(redis.port))
  const rules = temporaryRules()
  await rules.putRuleSet({ id: 'shop', rules: [rule('a'), rule('b')] }, { by: 'ann' })
  const gate = await createFluxGate({
    rules,
    store: `redis://127.0.0.1:${proxy.port}`,
    resilience: { timeoutMs: 10_000 },
  })
  onTestFinished(() => gate.close())
  const events: string[] = []
  gate.on('degraded', () => events.push('degraded'))
  gate.on('recovered', () => events.push('recovered'))
  const { ask } = await serverWith({ gate, rules })
  const check = async () => (await gate.check({ clientIp: '203.0.113.7', path: '/a' })).allowed
  expect([await check(), await check()]).toEqual([true, false])

  await proxy.refuse()
  proxy.cut()
  expect((await ask('DELETE', '/api/rule-sets/shop/rules/a')).status).toBe(204)
  expect(await gate.health()).toMatchObject({ status: 'DEGRADED', store: { status: 'DOWN', pendingResets: 1 } })
  expect(events).toEqual(['degraded'])
  await proxy.accept()
  await eventually('the reset', async () => (await gate.health()).store.pendingResets === 0)
  await eventually('the recovery', async () => (await gate.health()).status === 'UP')
  expect(events).toEqual(['degraded', 'recovered'])

  await rules.putRule('shop', rule('a'), { by: 'ann' })
  expect([await check(), await check()]).toEqual([true, false])
}, 60_000)

const rule = (id: string) => ({ id, path: `/${id}`, bands: [{ capacity: 1, window: '1d' }] })
