/** A limit of a middleware's own decides as a gate with the same rule does. */
import { expect, it, onTestFinished } from 'vitest'
import { createFluxGate } from '../../gate/create-flux-gate.js'
import type { EdgeRequest } from '../../http/edge-request.js'
import { Guard } from '../../http/guard.js'
import type { GuardOptions } from '../../http/guard-options.js'
import type { RuleInput } from '../../rules/schema/input.js'
import { manualClock } from '../../testing/manual-clock.js'
import { createGuard, type SingleLimit } from './create-guard.js'

const requestOf = (remoteAddress: string | undefined, headers: EdgeRequest['headers'] = {}): EdgeRequest => ({
  method: 'GET',
  url: '/',
  headers,
  remoteAddress,
  signal: () => new AbortController().signal,
})

const requests = [
  requestOf('192.0.2.1'),
  requestOf('192.0.2.1', { 'x-forwarded-for': '198.51.100.7', 'x-user-id': 'ann' }),
  requestOf('::ffff:192.0.2.1'),
  requestOf('2001:db8:0:100::1'),
  requestOf('2001:db8:0:1ff::2', { 'x-user-id': 'ann' }),
  requestOf(undefined),
]

const hour = { capacity: 3, window: '1h' } as const

it.each<[string, SingleLimit, GuardOptions]>([
  ['by address', hour, {}],
  ['with several bands', { bands: [{ capacity: 5, window: '1s' }, hour] }, {}],
  ['with FIXED_WINDOW', { ...hour, algorithm: 'FIXED_WINDOW' }, {}],
  ['with onMissingKey DENY', { ...hour, onMissingKey: 'DENY' }, {}],
  ['in SHADOW mode', { ...hour, mode: 'SHADOW' }, {}],
  ['by user', { ...hour, limitScope: 'USER_ID' }, { userIdHeader: 'X-User-Id' }],
  ['on a path', { ...hour, path: '/elsewhere' }, {}],
  ['behind a proxy', hour, { trustedProxies: ['192.0.2.1'] }],
  ['with permits', hour, { permits: 2 }],
  ['with permits per request', hour, { permits: () => 2 }],
  ['with standard headers', hour, { headers: 'standard' }],
  ['with another IPv6 prefix', { ...hour, ipv6Prefix: 64 }, {}],
])('a limit %s decides as with a full context', async (_, limit, edge) => {
  const clock = manualClock(1_700_000_000_000)
  const { ipv6Prefix = 56, capacity, window, bands, ...rest } = limit
  const rule = { id: 'limit', bands: bands ?? [{ capacity, window }], ...rest } as RuleInput
  const gate = await createFluxGate({ rules: { id: 'limit', rules: [rule] }, clock, ipv6Prefix })
  const { guard, close } = createGuard({ ...edge, ...limit, clock } as Parameters<typeof createGuard>[0])
  onTestFinished(async () => {
    await gate.close()
    await close()
  })
  const whole = new Guard(gate, { ...edge, clock })
  for (const aheadMs of [0, 0, 0, 0, 400_000, 3_600_000]) {
    clock.advance(aheadMs)
    for (const request of requests)
      expect(await guard.admit(request, undefined)).toEqual(await whole.admit(request, undefined))
  }
})

it('rejects every request with 503 after close', async () => {
  const { guard, close } = createGuard(hour)
  await close()
  expect(guard.admit(requestOf('192.0.2.1'), undefined)).toMatchObject({ kind: 'REJECTED', status: 503 })
})
