/** Several inline rules by name, and their replacements on routes. */
import { describe, expect, it, onTestFinished } from 'vitest'
import type { EdgeRequest } from '../../http/edge-request.js'
import { manualClock } from '../../testing/manual-clock.js'
import { createGuard, type RateLimitOptions } from './create-guard.js'
import { type RouteLimit, RouteLimits } from './route-limits.js'

const requestFrom = (remoteAddress: string): EdgeRequest => ({
  method: 'GET',
  url: '/',
  headers: {},
  remoteAddress,
  signal: () => new AbortController().signal,
})

const limits = {
  burst: { capacity: 2, window: '1s' },
  total: { capacity: 4, window: '1h', limitScope: 'GLOBAL' },
} as const

/** Returns a function that decides a request on a route with its own limit, or without one. */
function routesOf(options: object = { limits }) {
  const clock = manualClock(0)
  const routes = new RouteLimits<unknown>({ clock, ...options } as unknown as RateLimitOptions)
  onTestFinished(() => routes.close())
  const scopes = new Map<RouteLimit, { name: string; identity: string }>()
  const decide = async (limit?: RouteLimit, address = '192.0.2.1') => {
    const scopeOf = () => {
      const scope = scopes.get(limit as RouteLimit) ?? { name: 'GET:/a', identity: `${scopes.size}` }
      scopes.set(limit as RouteLimit, scope)
      return scope
    }
    const routeGuard = routes.guardOf(limit, scopeOf)
    if (routeGuard === undefined) return undefined
    const outcome = await routeGuard.guard.admit(requestFrom(address), undefined, routeGuard.overrides)
    return outcome.kind === 'ABORTED' ? undefined : outcome.decision
  }
  const left = async (limit?: RouteLimit, address?: string) =>
    Object.fromEntries((await decide(limit, address))?.bands.map(({ ruleId, remaining }) => [ruleId, remaining]) ?? [])
  return { clock, decide, left }
}

describe('named limits', () => {
  it('are decided together: a rejection by one charges none', async () => {
    const { clock, decide, left } = routesOf()
    expect(await left()).toEqual({ burst: 1, total: 3 })
    expect(await left()).toEqual({ burst: 0, total: 2 })
    expect(await decide()).toMatchObject({ allowed: false, ruleId: 'burst', band: '2-per-1s' })
    expect(await left(undefined, '192.0.2.2')).toEqual({ burst: 1, total: 1 })
    clock.advance(1_000)
    expect(await left()).toEqual({ burst: 1, total: 0 })
    expect(await decide()).toMatchObject({ allowed: false, ruleId: 'total' })
    expect(await left()).toEqual({ burst: 1, total: 0 })
  })

  it('have a rule of the route in place of one of them; the others keep their buckets', async () => {
    const { left } = routesOf()
    const own = { burst: { capacity: 5, window: '1s' } }
    const other = { burst: { capacity: 5, window: '1s' } }
    expect(await left()).toEqual({ burst: 1, total: 3 })
    expect(await left(own)).toEqual({ burst: 4, total: 2 })
    expect(await left(other)).toEqual({ burst: 4, total: 1 })
    expect(await left()).toEqual({ burst: 0, total: 0 })
  })

  it('share the buckets of a rule with an id', async () => {
    const { left } = routesOf()
    const [one, other] = [1, 2].map(() => ({ burst: { id: 'uploads', capacity: 5, window: '1s' } }))
    expect(await left(one)).toEqual({ uploads: 4, total: 3 })
    expect(await left(other)).toEqual({ uploads: 3, total: 2 })
  })

  it('can be removed on a route, all of them too', async () => {
    const { left, decide } = routesOf()
    expect(await left({ burst: false })).toEqual({ total: 3 })
    expect(await decide({ burst: false, total: false })).toBeUndefined()
    expect(await left({ capacity: 9, window: '1s' })).toEqual({ 'GET:.a': 8 })
    expect(await left()).toEqual({ burst: 1, total: 2 })
  })

  it('can depend on the request, each by itself', async () => {
    const capacity = async () => 7
    const { left } = routesOf({ limits: { ...limits, burst: { capacity, window: '1s' } } })
    expect(await left()).toEqual({ burst: 6, total: 3 })
    expect(await left({ total: { bands: () => [{ capacity: 50, window: '1h' }] } })).toEqual({ burst: 5, total: 49 })
  })

  it('charge different costs', async () => {
    const tokens = { capacity: 100, window: '1h', cost: 'tokens' }
    const { left } = routesOf({ limits: { ...limits, tokens }, costs: () => ({ tokens: 30 }) })
    expect(await left()).toEqual({ burst: 1, total: 3, tokens: 70 })
  })
})

describe('invalid named limits', () => {
  it.each<[object, ...unknown[]]>([
    [{ limits: {} }, 'limits: must have at least one rule'],
    [{ limits: [] }, 'limits: must be an object of rules by name'],
    [{ limits, capacity: 5 }, 'capacity: must not be combined with limits; move it into a rule'],
    [{ limits: { store: { capacity: 1, window: '1s' } } }, 'limits.store: must have another name'],
    [{ limits: { 'a b': { capacity: 1, window: '1s' } } }, 'limits.a b: must have another name'],
    [{ limits: { a: 5 } }, 'limits.a: must be a rule such as'],
    [{ limits: { a: { capacity: 1 } } }, 'limits.a.window: must be a duration'],
    [{ limits: { a: { capacity: () => 1, window: 60 } } }, 'limits.a.window: must have a unit'],
    [{ limits: { a: { capacity: () => 1, algorithm: 'CONCURRENCY' } } }, 'limits.a.algorithm: must not be CONCURRENCY'],
    [
      { limits: { a: limits.burst, b: { ...limits.burst, id: 'a' } } },
      'limits.b.id: must be unique; limits.a has the same, "a"',
    ],
    [
      { limits: { a: { ...limits.burst, limitScope: 'IP' } }, key: () => 'k' },
      'limits.a.limitScope: must not be combined',
    ],
    [{ limits: { a: { ...limits.burst, limitScope: 'USER_ID' } } }, 'no source for a user id'],
  ])('are errors at creation: %j', (options, message) => {
    expect(() => createGuard(options as never)).toThrow(message)
  })

  it.each<[object, ...unknown[]]>([
    [{ limits }, { bursts: false }, 'bursts: is no named limit; did you mean burst?'],
    [{ capacity: 1, window: '1s' }, { burst: false }, 'burst: requires the option limits'],
    [{ limits }, { burst: { capacity: 1 } }, 'limits.burst.window'],
    [{ limits }, { burst: 5 }, 'burst: unknown field'],
  ])('of a route are errors: %j %j', async (options, limit, message) => {
    await expect(routesOf(options).decide(limit as never)).rejects.toThrow(message)
  })
})
