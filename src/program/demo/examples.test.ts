import { expect, it } from 'vitest'
import { parseRuleSets } from '../../rules/schema/parse-rules.js'
import { findDemoExamples } from './examples.js'

const hints = (...rules: object[]) => findDemoExamples(parseRuleSets({ id: 'default', rules }), {})

it('finds an allowed request, one with an early and long rejection, and a delayed one', async () => {
  const found = await hints(
    { id: 'a', path: '/a', bands: [{ capacity: 2, window: '10s' }] },
    { id: 'b', path: '/b', bands: [{ capacity: 3, refillTokens: 1, window: '1m' }] },
    { id: 'c', path: '/c', bands: [{ capacity: 10, window: '1h' }] },
    { id: 'd', path: '/d', algorithm: 'LEAKY_BUCKET', bands: [{ capacity: 2, window: '1s' }] },
  )
  expect(found).toEqual({ allowed: '/a', rejected: { path: '/b', calls: 4 }, held: '/d' })
})

it('takes other matching rules into account', async () => {
  const found = await hints(
    { id: 'a', path: '/a', bands: [{ capacity: 5, window: '10s' }] },
    { id: 'all', limitScope: 'GLOBAL', bands: [{ capacity: 1, window: '1m' }] },
  )
  expect(found).toEqual({ allowed: '/a', rejected: { path: '/a', calls: 2 } })
})

it.each([
  ['patterns', { path: '/a/*' }],
  ['other methods', { path: '/a', method: 'POST' }],
  ['further conditions', { path: '/a', when: { 'attributes.tier': 'free' } }],
  ['characters that a shell would interpret', { path: '/$(a)' }],
  ['rules that never reject', { path: '/a', mode: 'SHADOW' }],
])('gives no hints for %s', async (_, rule) => {
  expect(await hints({ id: 'a', bands: [{ capacity: 1, window: '1m' }], ...rule })).toEqual({})
})

it('gives no hint for a rejection that needs more than ten requests', async () => {
  expect(await hints({ id: 'a', path: '/a', bands: [{ capacity: 10, window: '1m' }] })).toEqual({ allowed: '/a' })
})
