import { expect, it } from 'vitest'
import { parseRuleSets } from '../../rules/schema/schema.js'
import { findDemoHints } from './hints.js'

const hints = (...rules: object[]) => findDemoHints(parseRuleSets({ id: 'default', rules }), {})

it('finds a request that is allowed, one that is refused soon and for long, and one that is held', async () => {
  const found = await hints(
    { id: 'a', path: '/a', bands: [{ capacity: 2, window: '10s' }] },
    { id: 'b', path: '/b', bands: [{ capacity: 3, refillTokens: 1, window: '1m' }] },
    { id: 'c', path: '/c', bands: [{ capacity: 10, window: '1h' }] },
    { id: 'd', path: '/d', algorithm: 'LEAKY_BUCKET', bands: [{ capacity: 2, window: '1s' }] },
  )
  expect(found).toEqual({ allowed: '/a', refused: { path: '/b', calls: 4 }, held: '/d' })
})

it('counts what other rules that match have to say', async () => {
  const found = await hints(
    { id: 'a', path: '/a', bands: [{ capacity: 5, window: '10s' }] },
    { id: 'all', limitScope: 'GLOBAL', bands: [{ capacity: 1, window: '1m' }] },
  )
  expect(found).toEqual({ allowed: '/a', refused: { path: '/a', calls: 2 } })
})

it.each([
  ['patterns', { path: '/a/*' }],
  ['other methods', { path: '/a', method: 'POST' }],
  ['further conditions', { path: '/a', when: { 'attributes.tier': 'free' } }],
  ['characters that a shell would read', { path: '/$(a)' }],
  ['rules that never refuse', { path: '/a', mode: 'SHADOW' }],
])('promises nothing about %s', async (_, rule) => {
  expect(await hints({ id: 'a', bands: [{ capacity: 1, window: '1m' }], ...rule })).toEqual({})
})

it('promises no refusal to those who would have to ask too often', async () => {
  expect(await hints({ id: 'a', path: '/a', bands: [{ capacity: 10, window: '1m' }] })).toEqual({ allowed: '/a' })
})
