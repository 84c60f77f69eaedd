import { expect, it } from 'vitest'
import { keyDigest } from '../../../src/telemetry/key-digest.js'
import { wholeServer } from '../../fixtures/test-server.js'

const shop = '/api/rule-sets/shop'
const path = `${shop}/candidate`
const check = { ruleSetId: 'shop', clientIp: '203.0.113.7', path: '/shop/cart', permits: 2 }

it('is put, compared, promoted with history, and gone afterwards', async () => {
  const { ask } = await wholeServer()
  const { body: current } = await ask('GET', shop)
  const rules = current.rules.map((rule: { id: string }) =>
    rule.id === 'per-address' ? { ...rule, bands: [{ label: 'minute', capacity: 3, window: '1m' }] } : rule,
  )
  const put = await ask('PUT', path, { ...current, rules })
  expect(put.status).toBe(201)
  expect(put.body).toMatchObject({ id: 'shop.candidate', candidateOf: 'shop', version: 1 })
  expect((await ask('GET', path)).body).toEqual(put.body)
  expect((await ask('GET', '/api/candidates')).body).toEqual({ candidates: [put.body], cursor: null })
  expect((await ask('GET', '/api/rule-sets')).body.ruleSets.map(({ id }: { id: string }) => id)).toEqual([
    'other',
    'shop',
  ])
  for (let i = 0; i < 3; i++) await ask('POST', '/api/ratelimit/check', check)
  const report = await ask('GET', `${path}/report`)
  const counts = { rejectedByBoth: 1, rejectedNowOnly: 0, rejectedThenOnly: 1 }
  expect(report.body).toMatchObject({
    ruleSetId: 'shop',
    decisions: 3,
    ...counts,
    rules: [{ ruleId: 'per-address', ...counts }],
    keys: [{ ruleId: 'per-address', key: keyDigest('203.0.113.7'), ...counts }],
  })
  expect((await ask('POST', `${path}/promote`, undefined, { 'If-Match': '"99"' })).status).toBe(412)
  const promoted = await ask('POST', `${path}/promote`, undefined, { 'If-Match': `"${current.version}"` })
  expect(promoted.status).toBe(200)
  expect(promoted.body).toMatchObject({ id: 'shop', version: current.version + 1 })
  expect(promoted.body).not.toHaveProperty('candidateOf')
  expect(promoted.body.rules.find(({ id }: { id: string }) => id === 'per-address').bands[0].capacity).toBe(3)
  expect((await ask('GET', path)).status).toBe(404)
  expect((await ask('GET', '/api/candidates')).body.candidates).toEqual([])
  expect((await ask('GET', `${path}/report`)).body.code).toBe('FLUXGATE_CANDIDATE_UNKNOWN')
  const { body: history } = await ask('GET', `${shop}/history`)
  expect(history.changes[0]).toMatchObject({ action: 'PUT_SET', version: current.version + 1 })
  // In force at once.
  expect((await ask('POST', '/api/ratelimit/check', { ...check, clientIp: '10.9.9.9' })).body.limit).toBe(3)
})

it('changes no rule if it is promoted and equals the current rules', async () => {
  const { ask } = await wholeServer()
  await ask('POST', '/api/ratelimit/check', check)
  const { body: current } = await ask('GET', shop)
  await ask('PUT', path, current)
  const { body: promoted } = await ask('POST', `${path}/promote`)
  expect(promoted.rules).toEqual(current.rules)
  // Buckets keep their levels.
  expect((await ask('POST', '/api/ratelimit/check', { ...check, permits: 1 })).body.remaining).toBe(2)
})

it('is dropped, and cannot be promoted afterwards', async () => {
  const { ask } = await wholeServer()
  expect((await ask('PUT', path, { rules: [] })).status).toBe(201)
  expect((await ask('PUT', path, { rules: [], description: 'second' })).status).toBe(200)
  expect((await ask('DELETE', path)).status).toBe(204)
  for (const [method, place] of [
    ['DELETE', path],
    ['POST', `${path}/promote`],
    ['GET', path],
  ] as const)
    expect((await ask(method, place)).body.code, method).toBe('FLUXGATE_CANDIDATE_UNKNOWN')
})

it('rejects invalid candidates and unknown rule sets', async () => {
  const { ask } = await wholeServer()
  expect((await ask('PUT', path, { rules: [{ id: 'x' }] })).body.code).toBe('FLUXGATE_RULES_INVALID')
  expect((await ask('PUT', path, { id: 'other', rules: [] })).body.detail).toContain('must be the id in the URL')
  expect((await ask('PUT', '/api/rule-sets/nobody/candidate', { rules: [] })).body.code).toBe(
    'FLUXGATE_RULE_SET_UNKNOWN',
  )
  expect((await ask('DELETE', '/api/rule-sets/nobody/candidate')).status).toBe(404)
})
