import { describe, expect, it } from 'vitest'
import type { MatchedContext } from '../request-context.js'
import { compileConditions } from './condition.js'

function holds(field: string, values: readonly string[], context: MatchedContext): boolean {
  return compileConditions([{ field, values }])?.(context, context.pathVariables) ?? true
}

describe('conditions', () => {
  it('compare attributes as text', () => {
    expect(holds('attributes.tier', ['premium'], { attributes: { tier: 'premium' } })).toBe(true)
    expect(holds('attributes.tier', ['premium'], { attributes: { tier: 'Premium' } })).toBe(false)
    expect(holds('attributes.level', ['3'], { attributes: { level: 3 } })).toBe(true)
    expect(holds('attributes.beta', ['true'], { attributes: { beta: true } })).toBe(true)
    expect(holds('attributes.beta', ['true'], { attributes: { beta: false } })).toBe(false)
    expect(holds('attributes.tier', ['premium'], {})).toBe(false)
    expect(holds('attributes.tier', ['null', 'undefined'], { attributes: { tier: null } })).toBe(false)
    expect(holds('attributes.tier', ['[object Object]'], { attributes: { tier: {} } })).toBe(false)
  })

  it('accept any of several values and any element of a list', () => {
    expect(holds('attributes.role', ['admin', 'owner'], { attributes: { role: 'owner' } })).toBe(true)
    expect(holds('attributes.role', ['admin'], { attributes: { role: ['user', 'admin'] } })).toBe(true)
    expect(holds('attributes.role', ['user,admin'], { attributes: { role: ['user', 'admin'] } })).toBe(false)
  })

  it('read nested attributes, preferring an attribute with the literal dotted name', () => {
    expect(holds('attributes.user.tier', ['gold'], { attributes: { user: { tier: 'gold' } } })).toBe(true)
    expect(holds('attributes.user.tier', ['gold'], { attributes: { 'user.tier': 'gold', user: { tier: 'x' } } })).toBe(
      true,
    )
    expect(holds('attributes.user.tier', ['gold'], { attributes: { 'user.tier': 'x', user: { tier: 'gold' } } })).toBe(
      false,
    )
    expect(holds('attributes.user.tier', ['gold'], { attributes: { user: 'gold' } })).toBe(false)
  })

  it('ignore inherited properties', () => {
    for (const name of ['constructor', '__proto__', 'toString', 'constructor.name', '__proto__.x']) {
      expect(holds(`attributes.${name}`, ['Object', '1'], { attributes: {} }), name).toBe(false)
      expect(holds(`header.${name}`, ['Object', '1'], { headers: {} }), name).toBe(false)
      expect(holds(`path.${name}`, ['Object', '1'], { pathVariables: {} }), name).toBe(false)
    }
    expect(holds('attributes.x', ['1'], { attributes: Object.create({ x: '1' }) })).toBe(false)
  })

  it('match headers in any letter case, single or repeated', () => {
    expect(holds('header.X-App', ['ios'], { headers: { 'x-app': 'ios' } })).toBe(true)
    expect(holds('header.x-app', ['ios'], { headers: { 'X-App': 'ios' } })).toBe(true)
    expect(holds('header.x-app', ['ios'], { headers: { 'x-app': ['web', 'ios'] } })).toBe(true)
    expect(holds('header.x-app', ['ios'], { headers: { 'x-app': 'IOS' } })).toBe(false)
    expect(holds('header.x-app', ['ios'], { headers: { 'x-apps': 'ios' } })).toBe(false)
  })

  it('match IP addresses and networks', () => {
    expect(holds('clientIp', ['10.0.0.0/8'], { clientIp: '10.255.0.1' })).toBe(true)
    expect(holds('clientIp', ['10.0.0.0/8'], { clientIp: '11.0.0.0' })).toBe(false)
    expect(holds('clientIp', ['10.0.0.0/8'], { clientIp: '::ffff:10.1.2.3' })).toBe(true)
    expect(holds('clientIp', ['192.0.2.1', '2001:db8::/32'], { clientIp: '2001:DB8:1::' })).toBe(true)
    expect(holds('clientIp', ['192.0.2.1'], { clientIp: '192.0.2.10' })).toBe(false)
    expect(holds('clientIp', ['0.0.0.0/0'], {})).toBe(false)
    expect(holds('clientIp', ['unix:'], { clientIp: 'unix:' })).toBe(true)
  })

  it('compare user, API key, method and captured segments', () => {
    expect(holds('userId', ['u1'], { userId: 'u1' })).toBe(true)
    expect(holds('userId', ['u1'], { userId: 'u2' })).toBe(false)
    expect(holds('apiKey', ['k1'], { apiKey: 'k1' })).toBe(true)
    expect(holds('method', ['get'], { method: 'GET' })).toBe(true)
    expect(holds('method', ['GET'], { method: 'get' })).toBe(true)
    expect(holds('method', ['GET'], {})).toBe(false)
    expect(holds('path.id', ['7'], { pathVariables: { id: '7' } })).toBe(true)
    expect(holds('path.id', ['7'], {})).toBe(false)
  })

  it('must all hold', () => {
    const when = [
      { field: 'userId', values: ['u1'] },
      { field: 'apiKey', values: ['k1'] },
    ]
    const all = compileConditions(when)
    expect(all?.({ userId: 'u1', apiKey: 'k1' }, undefined)).toBe(true)
    expect(all?.({ userId: 'u1', apiKey: 'k2' }, undefined)).toBe(false)
    expect(all?.({ userId: 'u2', apiKey: 'k1' }, undefined)).toBe(false)
    expect(compileConditions([])).toBeUndefined()
  })

  it('reject unknown fields', () => {
    for (const field of ['', 'ip', 'attributes', 'attributes.', 'query.a', '.a', 'constructor', 'toString']) {
      expect(() => compileConditions([{ field, values: ['x'] }])).toThrow(`uses the unknown field "${field}"`)
    }
  })
})
