import { describe, expect, it } from 'vitest'
import type { RuleInput } from '../rules/schema/input.js'
import { createFluxGate } from './create-flux-gate.js'

const band = { label: 'minute', capacity: 2, window: '1m' }

async function statusesOf(rules: readonly Partial<RuleInput>[], context: object, set: object = {}) {
  const gate = await createFluxGate({
    rules: { id: 'api', ...set, rules: rules.map((rule, i) => ({ id: `r${i}`, bands: [band], ...rule })) as never },
  })
  const { rules: found, decision } = await gate.explain(context)
  await gate.close()
  return {
    decision,
    rules: found.map(({ status, failed }) => [status, failed?.field, failed?.expected, failed?.received]),
  }
}

describe('gate.explain', () => {
  it('names the first condition that failed, in the order of the rule', async () => {
    const when = { 'attributes.tier': ['free', 'trial'], 'header.x-app': 'ios', clientIp: '10.0.0.0/8' }
    const rule = { path: '/a/{id}', method: ['GET'], when } as const
    const good = {
      path: '/A/7',
      method: 'HEAD',
      attributes: { tier: 'free' },
      headers: { 'X-App': 'ios' },
      clientIp: '10.1.1.1',
    }
    const only = async (context: object) => (await statusesOf([rule], context)).rules[0]
    expect(await only(good)).toEqual(['MATCHED', undefined, undefined, undefined])
    expect(await only({ ...good, path: '/b/7?x=1' })).toEqual(['NOT_MATCHED', 'path', ['/a/{id}'], '/b/7'])
    expect(await only({ ...good, method: 'post' })).toEqual(['NOT_MATCHED', 'method', ['GET'], 'POST'])
    expect(await only({ ...good, method: undefined })).toEqual(['NOT_MATCHED', 'method', ['GET'], null])
    expect(await only({ ...good, attributes: {} })).toEqual(['NOT_MATCHED', 'attributes.tier', ['free', 'trial'], null])
    expect(await only({ ...good, headers: { 'x-app': ['web', 'tv'] } })).toEqual([
      'NOT_MATCHED',
      'header.x-app',
      ['ios'],
      ['web', 'tv'],
    ])
    expect(await only({ ...good, clientIp: '11.0.0.1' })).toEqual([
      'NOT_MATCHED',
      'clientIp',
      ['10.0.0.0/8'],
      '11.0.0.1',
    ])
  })

  it('distinguishes disabled, keyless and preceded rules', async () => {
    const { rules } = await statusesOf(
      [
        { enabled: false },
        { limitScope: 'USER_ID', onMissingKey: 'SKIP', priority: 5 },
        { mode: 'SHADOW', priority: 4 },
        { priority: 3 },
        { priority: 2 },
      ],
      { clientIp: '10.0.0.1' },
      { strategy: 'first' },
    )
    expect(rules).toEqual([
      ['NO_KEY', 'USER_ID', [], null],
      ['MATCHED', undefined, undefined, undefined],
      ['MATCHED', undefined, undefined, undefined],
      ['PRECEDED', 'strategy', ['all'], 'first: r3'],
      ['DISABLED', 'enabled', ['true'], 'false'],
    ])
  })

  it('names the missing field of a composite key that rejects the request', async () => {
    const rule = {
      limitScope: 'COMPOSITE',
      compositeKeyFields: ['IP', 'attributes.tenant'],
      onMissingKey: 'DENY',
    } as const
    const { rules, decision } = await statusesOf([rule, {}], { clientIp: '10.0.0.1' })
    expect(rules[0]).toEqual(['MISSING_KEY', 'attributes.tenant', [], null])
    expect(rules[1]?.[0]).toBe('MATCHED')
    expect(decision.reason).toBe('MISSING_KEY')
  })

  it('shortens long values of the request', async () => {
    const { rules } = await statusesOf([{ when: { userId: 'ann' } }], { userId: 'x'.repeat(10_000) })
    expect(rules[0]?.[3]).toBe(`${'x'.repeat(256)}…`)
  })

  it('shows overrides: other bands, allowed and denied keys', async () => {
    const gate = await createFluxGate({
      rules: { id: 'api', rules: [{ id: 'r', limitScope: 'USER_ID', overrides: true, bands: [band] }] },
    })
    const put = (key: string, override: object) => gate.overrides?.put('api', 'r', { key, ...override } as never)
    await put('more', { action: 'LIMIT', bands: [{ label: 'minute', capacity: 50, window: '1m' }] })
    await put('friend', { action: 'ALLOW' })
    await put('foe', { action: 'DENY' })
    const bucketOf = async (userId: string) => (await gate.explain({ userId })).rules[0]?.buckets[0]
    expect(await bucketOf('other')).toMatchObject({ override: null, bands: [{ limit: 2, remaining: 2 }] })
    expect(await bucketOf('more')).toMatchObject({ override: 'LIMIT', bands: [{ limit: 50, remaining: 50 }] })
    expect(await bucketOf('friend')).toMatchObject({ override: 'ALLOW', bands: [] })
    expect(await bucketOf('foe')).toMatchObject({ override: 'DENY', bands: [] })
    await gate.close()
  })

  it('shows an override of requests in progress or a calendar only if there is one', async () => {
    const [slots, month] = [
      { label: 'slots', capacity: 2, algorithm: 'CONCURRENCY' },
      { label: 'month', capacity: 9, algorithm: 'FIXED_WINDOW', calendar: 'MONTH', timeZone: 'Asia/Seoul' },
    ] as const
    const gate = await createFluxGate({
      rules: { id: 'api', rules: [{ id: 'r', limitScope: 'USER_ID', overrides: true, bands: [slots, month] }] },
    })
    const overrideOf = async () => (await gate.explain({ userId: 'ann' })).rules[0]?.buckets[0]?.override
    expect(await overrideOf()).toBeNull()
    const bands = [slots, { ...month, capacity: 10 }]
    await gate.overrides?.put('api', 'r', { key: 'ann', action: 'LIMIT', bands })
    expect(await overrideOf()).toBe('LIMIT')
    await gate.close()
  })

  it('returns the reason for a rule set that does not exist', async () => {
    const gate = await createFluxGate({ rules: { id: 'api', rules: [] }, logger: { warn: () => {} } })
    expect(await gate.explain({}, { ruleSetId: 'nobody' })).toMatchObject({
      ruleSetId: null,
      rules: [],
      decision: { reason: 'NO_RULE_SET' },
    })
    await gate.close()
  })

  it('rejects an invalid limit', async () => {
    const gate = await createFluxGate({ rules: { id: 'api', rules: [] } })
    await expect(gate.explain({}, { limit: -1 })).rejects.toThrow(
      'limit must be an integer of at least 0; received -1.',
    )
    await gate.close()
  })
})
