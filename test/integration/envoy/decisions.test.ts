import { Metadata, type ServiceError } from '@grpc/grpc-js'
import { expect, it } from 'vitest'
import type { RuleSetInput } from '../../../src/rules/schema/input.js'
import { clientOf, descriptor, statusOf } from './rate-limit-client.js'
import { rateLimitServer } from './test-rate-limit-server.js'

const minute = { algorithm: 'FIXED_WINDOW', window: '1m' } as const

const rules: RuleSetInput = {
  id: 'edge',
  rules: [
    {
      id: 'tenants',
      name: 'per tenant',
      when: { 'attributes.envoy.descriptor': 'tenant' },
      limitScope: 'CUSTOM',
      keyField: 'attributes.tenant',
      bands: [{ label: 'minute', capacity: 3, ...minute }],
    },
    {
      id: 'addresses',
      when: { 'attributes.envoy.descriptor': 'remote_address' },
      bands: [{ label: 'minute', capacity: 2, ...minute }],
    },
    {
      id: 'login',
      path: '/login',
      method: 'POST',
      when: { 'attributes.envoy.descriptor': 'path|method|user_id|api_key' },
      limitScope: 'COMPOSITE',
      compositeKeyFields: ['USER_ID', 'API_KEY'],
      bands: [{ capacity: 1, ...minute }],
    },
    {
      id: 'shadow',
      mode: 'SHADOW',
      when: { 'attributes.envoy.descriptor': 'shadow' },
      limitScope: 'GLOBAL',
      bands: [{ capacity: 1, ...minute }],
    },
    {
      id: 'twice',
      when: { 'attributes.generic_key': 'a', 'attributes.generic_key#2': 'b' },
      limitScope: 'GLOBAL',
      bands: [{ capacity: 1, window: '10s' }],
    },
  ],
}

const tenant = (value: string) => descriptor('tenant', value)

it('counts a descriptor under the rule that matches, and reports the limit', async () => {
  const { ask } = await rateLimitServer(rules)
  const first = await ask('edge', [tenant('acme')])
  expect(first).toMatchObject({
    overall_code: 'OK',
    statuses: [
      {
        code: 'OK',
        current_limit: { name: 'per tenant', requests_per_unit: 3, unit: 'MINUTE', unit_multiplier: null },
        limit_remaining: 2,
        duration_until_reset: { seconds: 50, nanos: 0 },
      },
    ],
  })
  await ask('edge', [tenant('acme')])
  await ask('edge', [tenant('acme')])
  const rejected = await ask('edge', [tenant('acme')])
  expect(rejected).toMatchObject({
    overall_code: 'OVER_LIMIT',
    statuses: [{ code: 'OVER_LIMIT', limit_remaining: 0, duration_until_reset: { seconds: 50 } }],
  })
  expect(await ask('edge', [tenant('other')])).toMatchObject({ overall_code: 'OK' })
})

it('sends the headers of the gateway', async () => {
  const { ask } = await rateLimitServer(rules)
  const headersOf = async () => {
    const { response_headers_to_add: headers } = await ask('edge', [tenant('acme')])
    return Object.fromEntries(headers.map(({ key, value }: { key: string; value: string }) => [key, value]))
  }
  expect(await headersOf()).toEqual({
    'RateLimit-Policy': '"tenants.minute";q=3;w=60',
    RateLimit: '"tenants.minute";r=2;t=50',
    'X-RateLimit-Limit': '3',
    'X-RateLimit-Remaining': '2',
    'X-RateLimit-Reset': '1800000060',
  })
  await headersOf()
  await headersOf()
  expect(await headersOf()).toMatchObject({ RateLimit: '"tenants.minute";r=0;t=50', 'Retry-After': '50' })
})

it('names a limit once in the headers if several descriptors count under it', async () => {
  const { ask } = await rateLimitServer(rules)
  const { response_headers_to_add: headers } = await ask('edge', [tenant('acme'), tenant('other')])
  expect(headers[0]).toEqual({ key: 'RateLimit-Policy', value: '"tenants.minute";q=3;w=60', raw_value: Buffer.of() })
})

it('decides all descriptors of a call together', async () => {
  const { ask } = await rateLimitServer(rules)
  const both = [tenant('acme'), descriptor('remote_address', '203.0.113.7')]
  const remaining = ({ overall_code, statuses }: { overall_code: string; statuses: object[] }) => [
    overall_code,
    ...statuses.map((status) => Object.values(status).slice(0, 3)).map(([code, , left]) => `${code} ${left}`),
  ]
  expect(remaining(await ask('edge', both))).toEqual(['OK', 'OK 2', 'OK 1'])
  expect(remaining(await ask('edge', both))).toEqual(['OK', 'OK 1', 'OK 0'])
  expect(remaining(await ask('edge', both))).toEqual(['OVER_LIMIT', 'OK 1', 'OVER_LIMIT 0'])
  expect(remaining(await ask('edge', [tenant('acme')]))).toEqual(['OK', 'OK 0'])
})

it('sets client address, path, method, user and API key from the entries of these names', async () => {
  const { ask } = await rateLimitServer(rules)
  const login = (user: string) =>
    descriptor('path', '/login?next=1', 'method', 'POST', 'user_id', user, 'api_key', 'k1')
  expect(await ask('edge', [login('ann')])).toMatchObject({ overall_code: 'OK', statuses: [{ limit_remaining: 0 }] })
  expect(await ask('edge', [login('bob')])).toMatchObject({ overall_code: 'OK' })
  expect(await ask('edge', [login('ann')])).toMatchObject({ overall_code: 'OVER_LIMIT' })
})

it('gives repeated keys attributes of their own', async () => {
  const { ask } = await rateLimitServer(rules)
  const ordered = [descriptor('generic_key', 'a', 'generic_key', 'b')]
  expect(await ask('edge', ordered)).toMatchObject({
    statuses: [{ current_limit: { requests_per_unit: 1, unit: 'SECOND', unit_multiplier: { value: 10 } } }],
  })
  expect(await ask('edge', ordered)).toMatchObject({ overall_code: 'OVER_LIMIT' })
  expect(await ask('edge', [descriptor('generic_key', 'b', 'generic_key', 'a')])).toMatchObject({ overall_code: 'OK' })
})

it('answers OK without a limit for an unknown domain and for a descriptor without a rule', async () => {
  const { ask } = await rateLimitServer(rules)
  const unlimited = { code: 'OK', current_limit: null, limit_remaining: 0, duration_until_reset: null }
  expect(await ask('nowhere', [tenant('a')])).toMatchObject({
    overall_code: 'OK',
    statuses: [unlimited],
    response_headers_to_add: [],
  })
  expect(await ask('edge', [descriptor('other', 'x'), tenant('a')])).toMatchObject({
    overall_code: 'OK',
    statuses: [unlimited, { code: 'OK', limit_remaining: 2 }],
  })
})

it('never rejects for a shadow rule, and does not show it', async () => {
  const { ask } = await rateLimitServer(rules)
  for (let i = 0; i < 3; i++)
    expect(await ask('edge', [descriptor('shadow', 'x')])).toMatchObject({
      overall_code: 'OK',
      statuses: [{ code: 'OK', current_limit: null }],
    })
})

it('adds the hits of equal descriptors, but needs room for one request if they have none', async () => {
  const { ask } = await rateLimitServer(rules)
  const codes = async (...hits: number[]) => {
    const descriptors = hits.map((value) => ({ ...tenant('acme'), hits_addend: { value } }))
    return (await ask('edge', descriptors)).statuses.map(({ code }: { code: string }) => code)
  }
  expect(await codes(2, 2)).toEqual(['OVER_LIMIT', 'OVER_LIMIT'])
  expect(await codes(1, 1)).toEqual(['OK', 'OK'])
  expect(await codes(0, 0)).toEqual(['OK', 'OK'])
  expect(await codes(0, 1)).toEqual(['OK', 'OK'])
  expect(await codes(0, 0)).toEqual(['OVER_LIMIT', 'OVER_LIMIT'])
})

it('charges hits_addend of the call, or of the descriptor; 0 peeks and negative hits refund', async () => {
  const { ask } = await rateLimitServer(rules)
  const left = async (hits?: number | string, more: object = {}, isNegative = false) => {
    const one = {
      ...tenant('a'),
      ...(hits !== undefined && { hits_addend: { value: hits } }),
      is_negative_hits: isNegative,
    }
    const { statuses } = await ask('edge', [one], more)
    return `${statuses[0].code} ${statuses[0].limit_remaining}`
  }
  expect(await left(0)).toBe('OK 3')
  expect(await left(undefined, { hits_addend: 2 })).toBe('OK 1')
  expect(await left(2)).toBe('OVER_LIMIT 1')
  expect(await left(1, { hits_addend: 9 })).toBe('OK 0')
  expect(await left(0)).toBe('OVER_LIMIT 0')
  expect(await left(2, {}, true)).toBe('OK 2')
  expect(await left(5, {}, true)).toBe('OK 3')
  // 64 bits without a sign: neither is −1 or the lowest negative number.
  expect(await left('18446744073709551615')).toBe('OVER_LIMIT 3')
  expect(await left('9223372036854775808')).toBe('OVER_LIMIT 3')
  expect(await left('18446744073709551615', {}, true)).toBe('OK 3')
  expect(await left(4_000_000_000)).toBe('OVER_LIMIT 3')
  expect(await left(undefined, {}, true)).toBe('OK 3')
})

it('replaces the bands with the limit of a descriptor', async () => {
  const { ask } = await rateLimitServer(rules)
  const limited = (unit: string | number, requests_per_unit = 1, more: object = {}) => [
    { ...tenant('a'), limit: { requests_per_unit, unit, ...more } },
  ]
  expect(await ask('edge', limited('HOUR', 5))).toMatchObject({
    overall_code: 'OK',
    statuses: [{ current_limit: { requests_per_unit: 5, unit: 'HOUR' }, limit_remaining: 4 }],
  })
  expect(await ask('edge', limited('MINUTE', 0))).toMatchObject({ overall_code: 'OVER_LIMIT' })
  expect(await ask('edge', limited('SECOND', 7, { unit_multiplier: { value: 30 } }))).toMatchObject({
    statuses: [{ current_limit: { requests_per_unit: 7, unit: 'SECOND', unit_multiplier: { value: 30 } } }],
  })
  expect(await statusOf(ask('edge', limited('UNKNOWN')))).toBe('INVALID_ARGUMENT')
  expect(await statusOf(ask('edge', limited(99)))).toBe('INVALID_ARGUMENT')
  const own = [{ ...descriptor('other', 'x'), limit: { requests_per_unit: 1, unit: 'MINUTE' } }]
  expect(await ask('edge', own)).toMatchObject({ overall_code: 'OK', statuses: [{ limit_remaining: 0 }] })
  expect(await ask('edge', own)).toMatchObject({ overall_code: 'OVER_LIMIT' })
})

it('rejects calls without a domain or without descriptors', async () => {
  const { ask } = await rateLimitServer(rules)
  const failure = await ask('', [tenant('a')]).catch((error: ServiceError) => error)
  expect(failure.details).toBe('domain must not be empty: it names the rule set.')
  expect(await statusOf(ask('edge', []))).toBe('INVALID_ARGUMENT')
  expect(await statusOf(ask('edge', new Array(257).fill(tenant('a'))))).toBe('INVALID_ARGUMENT')
})

it('treats keys of descriptors as names of attributes only', async () => {
  const { ask } = await rateLimitServer(rules)
  for (const key of ['__proto__', 'constructor', 'envoy.descriptor', 'a|b', ''])
    expect(await ask('edge', [descriptor(key, 'tenant')])).toMatchObject({ overall_code: 'OK' })
  expect(await ask('edge', [descriptor('envoy.descriptor', 'tenant', 'tenant', 'a')])).toMatchObject({
    statuses: [{ current_limit: null }],
  })
})

it('is UNAVAILABLE if the rules deny requests while the store fails', async () => {
  const failing = { store: 'redis://127.0.0.1:1', resilience: { connectTimeoutMs: 20 } }
  const denying = await rateLimitServer(rules, { gateOptions: { ...failing, onStoreFailure: 'DENY' } })
  expect(await statusOf(denying.ask('edge', [tenant('a')]))).toBe('UNAVAILABLE')
  expect(await denying.ask('edge', [descriptor('other', 'a')])).toMatchObject({ overall_code: 'OK' })
  const local = await rateLimitServer(rules, { gateOptions: failing })
  expect(await local.ask('edge', [tenant('a')], { hits_addend: 3 })).toMatchObject({ overall_code: 'OK' })
  expect(await local.ask('edge', [tenant('a')])).toMatchObject({ overall_code: 'OVER_LIMIT' })
})

it('is UNAVAILABLE after the gate has closed', async () => {
  const { ask, gate } = await rateLimitServer(rules)
  await gate.close()
  expect(await statusOf(ask('edge', [tenant('a')]))).toBe('UNAVAILABLE')
})

it('needs a token where one is configured, but not for health checks', async () => {
  const { GrpcError } = await import('../../../src/envoy/grpc/status.js')
  const authorize = (authorization: string | undefined): void => {
    if (authorization !== 'Bearer secret') throw new GrpcError('UNAUTHENTICATED', 'Send a token.')
  }
  const { port } = await rateLimitServer(rules, { authorize })
  const { ask, call } = clientOf(port)
  const metadata = new Metadata()
  metadata.set('authorization', 'Bearer secret')
  expect(await statusOf(ask('edge', [tenant('a')]))).toBe('UNAUTHENTICATED')
  expect(await statusOf(ask('edge', [tenant('a')], {}, metadata))).toBe('OK')
  expect(await call('/grpc.health.v1.Health/Check', {})).toEqual({ status: 'SERVING' })
})

it('holds the answer to a delayed call, and refunds a call whose deadline passes first', async () => {
  const waiting: RuleSetInput = {
    id: 'edge',
    rules: [
      {
        id: 'waits',
        limitScope: 'GLOBAL',
        algorithm: 'TOKEN_BUCKET',
        onLimitExceed: 'WAIT_FOR_REFILL',
        maxWaitMs: 60_000,
        bands: [{ capacity: 1, window: '10s' }],
      },
    ],
  }
  const { ask, call, clock, gate } = await rateLimitServer(waiting)
  await ask('edge', [tenant('a')])
  const path = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'
  const request = { domain: 'edge', descriptors: [tenant('a')] }
  expect(await statusOf(call(path, request, undefined, new Date(Date.now() + 100)))).toBe('DEADLINE_EXCEEDED')
  await expect.poll(async () => (await gate.health()).waiting).toBe(0)
  const held = ask('edge', [tenant('a')])
  await expect.poll(async () => (await gate.health()).waiting).toBe(1)
  clock.advance(10_000)
  expect(await held).toMatchObject({ overall_code: 'OK' })
})
