import { expect, it } from 'vitest'
import type { ServerHealth } from '../server/server-gate.js'
import { mergeHealth } from './merge-health.js'

const up: ServerHealth = {
  status: 'UP',
  store: { status: 'UP', sinceAt: 100, error: null },
  rules: { status: 'UP', sinceAt: null, error: null },
}
const down = (sinceAt: number): ServerHealth => ({
  ...up,
  status: 'DEGRADED',
  store: { status: 'DOWN', sinceAt, error: `down since ${sinceAt}` },
})

it('is UP if all processes are UP', () => {
  expect(mergeHealth([up, up])).toEqual(up)
})

it('reports each part that failed in one process, since the first failure', () => {
  const stale = { status: 'STALE', sinceAt: 300, error: 'rules.yaml: 1 error' } as const
  expect(mergeHealth([up, down(250), { ...up, status: 'DEGRADED', rules: stale }, down(200)])).toEqual({
    status: 'DEGRADED',
    store: { status: 'DOWN', sinceAt: 200, error: 'down since 200' },
    rules: stale,
  })
})

it('reports the error of a store that is UP, and a closed gate', () => {
  const pending = {
    status: 'UP',
    sinceAt: 150,
    error: 'The buckets of 1 removed rule could not be reset yet.',
  } as const
  expect(mergeHealth([up, { ...up, status: 'DEGRADED', store: pending }])).toMatchObject({
    status: 'DEGRADED',
    store: pending,
  })
  expect(mergeHealth([down(200), { ...up, status: 'DOWN' }]).status).toBe('DOWN')
})
