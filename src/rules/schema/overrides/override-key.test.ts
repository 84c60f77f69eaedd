import { expect, it } from 'vitest'
import type { Rule } from '../../../core/rule.js'
import { keyOfBan } from '../bans/ban-input.js'
import { parseRule } from '../parse-rules.js'
import { overrideKey } from './override-schema.js'

const rule = (limitScope: string): Rule =>
  parseRule({ id: 'login', limitScope, bands: [{ capacity: 1, window: '1m' }] }, 'rule')

it.each([
  ['203.0.113.300'],
  ['203.0.113.007'],
  ['203.0.113.*'],
  ['203.0.113.7:8080'],
  ['203.0.113.1-203.0.113.9'],
  [' 203.0.113.7'],
  ['[2001:db8::7]'],
  ['[2001:db8::7]:443'],
  ['2001:db8::12345'],
  ['1:2:3:4:5:6:7:8:9'],
  ['2001::db8::7'],
])('rejects %j as the key of an override and of a ban, because it is a malformed address', (key) => {
  const message = `must be an address such as 203.0.113.7 or 2001:db8::7, because rule login counts addresses; received ${JSON.stringify(key)}`
  expect(overrideKey(key, rule('IP'))).toBe(message)
  expect(keyOfBan(key, rule('IP'))).toEqual({ problem: message })
  expect(overrideKey(key, rule('API_KEY'))).toEqual({ key, isRange: false })
})

it.each([
  ['203.0.113.7', '203.0.113.7'],
  ['::ffff:203.0.113.7', '203.0.113.7'],
  ['2001:DB8::7', '2001:db8::/56'],
  ['anonymous', 'anonymous'],
  ['user:42', 'user:42'],
  ['cafe:1:2', 'cafe:1:2'],
  ['org::team::7', 'org::team::7'],
  ['12345', '12345'],
  ['1.2.3', '1.2.3'],
  ['example.com', 'example.com'],
])('accepts %j, which may be the key of a request', (received, key) => {
  expect(overrideKey(received, rule('IP'))).toEqual({ key, isRange: false })
  expect(keyOfBan(received, rule('IP'))).toEqual({ key })
})
