import { isIPv4, isIPv6 } from 'node:net'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalIp, inCidr, ipIdentity, parseCidr } from './ip-address.js'

const inside = (ip: string, network: string) => {
  const cidr = parseCidr(network)
  if (!cidr) throw new Error(`${network} is no network`)
  return inCidr(ip, cidr)
}

describe('canonicalIp', () => {
  it.each([
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['::FFFF:cb00:7107', '203.0.113.7'],
    ['0:0:0:0:0:ffff:203.0.113.7', '203.0.113.7'],
    ['2001:0DB8:0000:0000:0000:0000:0000:0001', '2001:db8::1'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1'],
    ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['1::', '1::'],
    ['::', '::'],
    ['::1', '::1'],
    ['::1.2.3.4', '::102:304'],
    ['fe80::1%eth0', 'fe80::1'],
  ])('normalises %s to %s', (text, ip) => expect(canonicalIp(text)).toBe(ip))

  it.each([
    '',
    ' ',
    'localhost',
    '1.2.3',
    '1.2.3.4.5',
    '256.1.1.1',
    '01.2.3.4',
    '1.2.3.4 ',
    '1..2.3',
    '1.2.3.4:80',
    ':',
    ':::',
    '1::2::3',
    ':1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:',
    '1:2:3:4:5:6:7:8:9',
    '1:2:3:4:5:6:7:8::',
    '12345::',
    'g::',
    '::1.2.3',
    '1:2:3:4:5:6:7:1.2.3.4',
    '[::1]',
  ])('rejects "%s"', (text) => expect(canonicalIp(text)).toBeUndefined())

  it('accepts the same addresses as Node', () => {
    const group = fc.oneof(
      fc.integer({ min: 0, max: 0xffff }).map((n) => n.toString(16)),
      fc.constantFrom('', '0', '00ab'),
    )
    const colons = fc.array(group, { maxLength: 9 }).map((groups) => groups.join(':'))
    const dots = fc
      .array(fc.integer({ min: 0, max: 300 }), { minLength: 3, maxLength: 5 })
      .map((parts) => parts.join('.'))
    const mixed = fc.tuple(colons, dots).map(([high, low]) => `${high}:${low}`)
    fc.assert(
      fc.property(fc.oneof(colons, dots, mixed, fc.ipV4(), fc.ipV6()), (text) => {
        const ip = canonicalIp(text)
        expect(ip !== undefined).toBe(isIPv4(text) || isIPv6(text))
        if (ip !== undefined) expect(canonicalIp(ip)).toBe(ip)
        if (isIPv6(text)) expect(inside(new URL(`http://[${text}]/`).hostname.slice(1, -1), text)).toBe(true)
      }),
      { numRuns: 3000 },
    )
  })
})

describe('networks', () => {
  it.each([
    ['10.0.0.0/8', '10.0.0.0', '9.255.255.255'],
    ['10.0.0.0/8', '10.255.255.255', '11.0.0.0'],
    ['10.1.2.3/8', '10.9.9.9', '11.1.2.3'],
    ['192.168.4.0/22', '192.168.7.255', '192.168.8.0'],
    ['192.0.2.1', '192.0.2.1', '192.0.2.2'],
    ['192.0.2.1/32', '::ffff:192.0.2.1', '192.0.2.0'],
    ['::ffff:10.0.0.0/104', '10.1.1.1', '11.1.1.1'],
    ['0.0.0.0/0', '255.255.255.255', '::1'],
    ['::/0', '2001:db8::1', '192.0.2.1'],
    ['2001:db8::/32', '2001:db8:ffff::1', '2001:db9::'],
    ['2001:db8:0:100::/56', '2001:db8:0:1ff::', '2001:db8:0:200::'],
    ['2001:db8::1', '2001:DB8:0::1', '2001:db8::2'],
  ])('%s contains %s but not %s', (network, ip, other) => {
    expect(inside(ip, network)).toBe(true)
    expect(inside(other, network)).toBe(false)
    expect(inside('nonsense', network)).toBe(false)
  })

  it.each(['10.0.0.0/33', '10.0.0.0/', '10.0.0.0/08', '10.0.0.0/-1', '10.0.0.0/8/8', '::/129', '10.0.0/8', '/8', ''])(
    'rejects the network "%s"',
    (text) => expect(parseCidr(text)).toBeUndefined(),
  )
})

describe('ipIdentity', () => {
  it('returns the canonical IPv4 address for every notation', () => {
    expect(ipIdentity('203.0.113.7')).toBe('203.0.113.7')
    expect(ipIdentity('::ffff:203.0.113.7')).toBe('203.0.113.7')
  })

  it('returns the /56 of an IPv6 address, or another configured prefix', () => {
    expect(ipIdentity('2001:db8:0:1ff:1:2:3:4')).toBe('2001:db8:0:100::/56')
    expect(ipIdentity('2001:db8:0:100::')).toBe('2001:db8:0:100::/56')
    expect(ipIdentity('2001:db8:0:200::')).toBe('2001:db8:0:200::/56')
    expect(ipIdentity('2001:db8:0:1ff:1:2:3:4', 64)).toBe('2001:db8:0:1ff::/64')
    expect(ipIdentity('2001:db8:0:1ff:1:2:3:4', 61)).toBe('2001:db8:0:1f8::/61')
    expect(ipIdentity('2001:DB8::1', 128)).toBe('2001:db8::1')
  })

  it('returns other text unchanged', () => {
    for (const text of ['', 'unknown', 'a:b', '1.2.3.4:80', ':'.repeat(1_000_000)]) expect(ipIdentity(text)).toBe(text)
  })
})
