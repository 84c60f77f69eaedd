import { describe, expect, it } from 'vitest'
import { compileSnapshot, MissingKey } from '../../core/decision/snapshot.js'
import { type Random, seededRandom } from '../../core/seeded-random.js'
import { parseRuleSets } from '../../rules/schema/parse-rules.js'
import { checkOf } from '../ratelimit/descriptor-check.js'
import { importLimits } from './import-limits.js'

const limit = (requests_per_unit: number, unit = 'minute') => ({ unit, requests_per_unit })

/** Returns which limit and which key a descriptor is counted under; undefined without a limit. */
function counted(document: unknown, ...entries: readonly (readonly [string, string])[]) {
  const { ruleSet } = importLimits(document)
  const snapshot = compileSnapshot(parseRuleSets(ruleSet), {
    maxWaitMs: 0,
    resetBucketsOnReload: true,
    resets: () => 0,
  })
  const { context } = checkOf(
    {
      entries: entries.map(([key, value]) => ({ key, value })),
      limit: undefined,
      hitsAddend: undefined,
      isNegative: false,
    },
    1,
    undefined,
  )
  const charges = snapshot.defaultPlan?.charges(context, 1) ?? []
  if (charges instanceof MissingKey) throw new Error('no charge needs an identity')
  const enforced = charges.filter(({ group }) => group.bands[0]?.label !== 'unlimited')
  return enforced.map(({ group, key, shadow }) => `${group.bands[0]?.capacity} ${key}${shadow ? ' shadow' : ''}`)
}

const example = {
  domain: 'edge',
  descriptors: [
    {
      key: 'path',
      value: '/login',
      rate_limit: limit(1),
      descriptors: [{ key: 'remote_address', rate_limit: limit(2) }],
    },
    {
      key: 'path',
      rate_limit: limit(3),
      descriptors: [
        { key: 'remote_address', value: '10.0.0.1', rate_limit: { unlimited: true } },
        { key: 'remote_address', rate_limit: limit(4) },
        { key: 'user', rate_limit: limit(5) },
      ],
    },
    { key: 'a', rate_limit: limit(6), descriptors: [{ key: 'a', value: 'y', rate_limit: limit(7) }] },
    { key: 'quiet', value: 'x', shadow_mode: true, rate_limit: limit(8) },
    { key: 'quiet', rate_limit: limit(9) },
  ],
}

describe('converted limits', () => {
  it('prefer the descriptor with the value, and count other values separately', () => {
    expect(counted(example, ['path', '/login'])).toEqual(['1 global'])
    expect(counted(example, ['path', '/other'])).toEqual(['3 /other'])
    expect(counted(example, ['path', '/login'], ['remote_address', '10.0.0.1'])).toEqual(['2 10.0.0.1'])
    expect(counted(example, ['path', '/a'], ['remote_address', '10.0.0.2'])).toEqual(['4 /a|10.0.0.2'])
  })

  it('do not limit what the configuration does not: unlimited values, other depths, orders and keys', () => {
    expect(counted(example, ['path', '/a'], ['remote_address', '10.0.0.1'])).toEqual([])
    expect(counted(example, ['path', '/a'], ['remote_address', '1'], ['user', 'b'])).toEqual([])
    expect(counted(example, ['remote_address', '1'], ['path', '/a'])).toEqual([])
    expect(counted(example, ['other', '1'])).toEqual([])
  })

  it('never go back from a value that is named: /login has no limit for users', () => {
    expect(counted(example, ['path', '/other'], ['user', 'ann'])).toEqual(['5 /other|ann'])
    expect(counted(example, ['path', '/login'], ['user', 'ann'])).toEqual([])
  })

  it('convert repeated keys and shadow mode, which ends the search too', () => {
    expect(counted(example, ['a', 'x'], ['a', 'y'])).toEqual(['7 x'])
    expect(counted(example, ['quiet', 'x'])).toEqual(['8 global shadow'])
    expect(counted(example, ['quiet', 'z'])).toEqual(['9 z'])
  })

  it('convert units to fixed windows', () => {
    const units = ['second', 'minute', 'HOUR', 'day', 'week', 'month', 'year']
    const descriptors = units.map((unit) => ({ key: unit, rate_limit: limit(1, unit) }))
    const { ruleSet } = importLimits({ domain: 'edge', descriptors })
    const [first] = parseRuleSets(ruleSet)
    expect(first?.rules.map(({ bands }) => (bands[0]?.windowTicks ?? 0) / 1_000_000)).toEqual([
      1, 60, 3_600, 86_400, 604_800, 2_592_000, 31_536_000,
    ])
  })

  it('convert names and replaces to rules', () => {
    const { ruleSet } = importLimits({
      domain: 'edge',
      descriptors: [
        { key: 'a', rate_limit: { ...limit(1), name: 'all' } },
        { key: 'b', rate_limit: { ...limit(2), replaces: [{ name: 'all' }, { name: 'unknown' }] } },
      ],
    })
    expect(ruleSet?.rules).toMatchObject([
      { id: 'a', name: 'all' },
      { id: 'b', replaces: ['a'] },
    ])
  })
})

describe('what has no equivalent', () => {
  it('is reported with its place, all at once', () => {
    const { errors, ruleSet } = importLimits({
      domain: 'a/b',
      descriptors: [
        { key: 'path', value: '/files/*', rate_limit: limit(1) },
        { key: 'a', rate_limit: { unit: 'fortnight', requests_per_unit: 5_000_000_000 } },
        { key: 'b', rate_limt: {} },
        { key: 'b' },
        { value: 'x' },
        'text',
      ],
    })
    expect(ruleSet).toBeUndefined()
    expect(errors.map(({ path }) => path)).toEqual([
      'domain',
      'descriptors[0].value',
      'descriptors[1].rate_limit.unit',
      'descriptors[1].rate_limit.requests_per_unit',
      'descriptors[2].rate_limt',
      'descriptors[3]',
      'descriptors[4].key',
      'descriptors[5]',
      'descriptors[5].key',
    ])
    expect(errors[1]?.message).toBe(
      'has no equivalent: rules compare whole values, not the prefix "/files/*". Name each value in a descriptor of its own, or omit the value to limit each value separately',
    )
  })

  it('is noted if it does not change the limits', () => {
    const { notes, errors } = importLimits({
      domain: 'edge',
      descriptors: [{ key: 'a', detailed_metric: true, value_to_metric: true, quota_mode: true, rate_limit: limit(1) }],
    })
    expect([errors, notes.map(({ path }) => path)]).toEqual([
      [],
      ['descriptors[0].detailed_metric', 'descriptors[0].value_to_metric', 'descriptors[0].quota_mode'],
    ])
  })

  it.each([null, 7, [], {}, { domain: 'a', descriptors: {} }, { domain: 'a', descriptors: [null] }])(
    'reports the malformed document %j',
    (document) => {
      expect(importLimits(document).errors.length).toBeGreaterThan(0)
    },
  )
})

interface Tree {
  readonly key: string
  readonly value?: string
  readonly rate_limit?: { readonly requests_per_unit?: number; readonly unlimited?: true; readonly unit?: string }
  readonly descriptors?: readonly Tree[]
}

const names = ['a', 'b', 'c']
const pick = <T>(random: Random, items: readonly T[]): T => items[Math.floor(random() * items.length)] as T

function randomTree(random: Random, depth: number, next: () => number): readonly Tree[] {
  const nodes = new Map<string, Tree>()
  for (let i = 0; i < 1 + random() * 4; i++) {
    const [key, value] = [pick(random, names), pick(random, [undefined, '1', '2'])]
    const chance = random()
    nodes.set(`${key}=${value}`, {
      key,
      ...(value !== undefined && { value }),
      ...(chance < 0.6 && { rate_limit: limit(next()) }),
      ...(chance >= 0.6 && chance < 0.75 && { rate_limit: { unlimited: true as const } }),
      ...(depth > 1 && random() < 0.7 && { descriptors: randomTree(random, depth - 1, next) }),
    })
  }
  return [...nodes.values()]
}

/** The search of envoyproxy/ratelimit. */
function search(tree: readonly Tree[], entries: readonly (readonly [string, string])[]): number | undefined {
  let nodes = tree
  for (const [i, [key, value]] of entries.entries()) {
    const node =
      nodes.find((one) => one.key === key && one.value === value) ??
      nodes.find((one) => one.key === key && one.value === undefined)
    if (node === undefined) return undefined
    if (i === entries.length - 1) return node.rate_limit?.requests_per_unit
    nodes = node.descriptors ?? []
  }
  return undefined
}

it('select the same limit as the original, for random configurations and descriptors', () => {
  const seed = Number(process.env.FLUXGATE_TEST_SEED ?? Date.now() % 2 ** 31)
  const random = seededRandom(seed)
  for (let round = 0; round < 60; round++) {
    let count = 0
    const descriptors = randomTree(random, 3, () => ++count)
    for (let i = 0; i < 20; i++) {
      const entries = Array.from(
        { length: 1 + Math.floor(random() * 3) },
        () => [pick(random, names), pick(random, ['1', '2', '3'])] as const,
      )
      const expected = search(descriptors, entries)
      const found = counted({ domain: 'edge', descriptors }, ...entries)
      const text = JSON.stringify({ seed, descriptors, entries })
      expect(
        found.map((one) => Number(one.split(' ')[0])),
        text,
      ).toEqual(expected === undefined ? [] : [expected])
    }
  }
})
