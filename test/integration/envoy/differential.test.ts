/**
 * The same configuration and the same requests in envoyproxy/ratelimit and in FluxGate. Every answer of both is compared with a
 * model, so that nothing differs but what docs/guide/envoy.md names.
 */
import { expect, it, onTestFinished } from 'vitest'
import { stringify } from 'yaml'
import { systemClock } from '../../../src/core/clock.js'
import { seededRandom } from '../../../src/core/seeded-random.js'
import { importLimits } from '../../../src/envoy/import/import-limits.js'
import { redisStore } from '../../../src/redis.js'
import { randomSeed } from '../../fixtures/random-seed.js'
import { startRedis } from '../../servers/redis-server.js'
import { originalProgram, startOriginal } from './original-service.js'
import type { Descriptor } from './rate-limit-client.js'
import { rateLimitServer } from './test-rate-limit-server.js'

type Random = () => number

const pick = <T>(random: Random, from: readonly T[]): T => from[Math.floor(random() * from.length)] as T

const keys = ['tenant', 'plan', 'path', 'remote_address', 'user_id']
const values = ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4']
/** Only limits in shadow mode have this capacity, so that they are known by it. */
const shadowCapacity = 3

interface Node {
  readonly key: string
  readonly value?: string
  readonly rate_limit?: object
  readonly shadow_mode?: boolean
  readonly descriptors?: readonly Node[]
}

/** Random descriptors, at most three levels deep. */
function randomNodes(random: Random, depth: number): Node[] {
  const nodes = new Map<string, Node>()
  for (let i = 0; i < 5; i++) {
    const [key, value] = [pick(random, keys), random() < 0.5 ? pick(random, values) : undefined]
    const isLeaf = depth === 3 || random() < 0.5
    const hasLimit = isLeaf || random() < 0.5
    nodes.set(`${key} ${value}`, {
      key,
      ...(value !== undefined && { value }),
      ...(hasLimit && randomLimit(random)),
      ...(!isLeaf && { descriptors: randomNodes(random, depth + 1) }),
    })
  }
  return [...nodes.values()]
}

function randomLimit(random: Random): object {
  if (random() < 0.1) return { rate_limit: { unlimited: true } }
  const isShadow = random() < 0.15
  const name = random() < 0.3 ? `limit-${Math.floor(random() * 4)}` : undefined
  const replaced = `limit-${Math.floor(random() * 4)}`
  return {
    rate_limit: {
      unit: pick(random, ['week', 'month', 'year']),
      requests_per_unit: isShadow ? shadowCapacity : pick(random, [0, 5, 20, 50, 100, 1_000]),
      ...(name && { name }),
      ...(random() < 0.2 && replaced !== name && { replaces: [{ name: replaced }] }),
    },
    ...(isShadow && { shadow_mode: true }),
  }
}

/** Mostly descriptors that the configuration has, with any values. */
function randomDescriptor(random: Random, nodes: readonly Node[]): Descriptor {
  const entries: { key: string; value: string }[] = []
  for (let level = nodes; level.length > 0 && (entries.length === 0 || random() < 0.8); ) {
    const node = pick(random, level)
    entries.push({ key: node.key, value: random() < 0.5 ? (node.value ?? pick(random, values)) : pick(random, values) })
    level = node.descriptors ?? []
  }
  if (random() < 0.05) entries.push({ key: pick(random, keys), value: pick(random, values) })
  return { entries, ...(random() < 0.3 && { hits_addend: { value: Math.floor(random() * 4) } }) }
}

interface Hit {
  readonly bucket: string
  readonly limit: { readonly requests_per_unit: number }
  readonly hits: number
  readonly isShadow: boolean
}

/** Hits are counted even if they are rejected, one descriptor after the other. */
function originally(counts: Map<string, number>, hits: readonly (Hit | undefined)[]) {
  return hits.map((hit) => {
    if (hit === undefined) return { code: 'OK', remaining: 0 }
    const count = (counts.get(hit.bucket) ?? 0) + hit.hits
    counts.set(hit.bucket, count)
    const isOver = count > hit.limit.requests_per_unit
    const code = isOver && !hit.isShadow ? 'OVER_LIMIT' : 'OK'
    return { code, remaining: isOver ? 0 : hit.limit.requests_per_unit - count }
  })
}

/** Only hits of allowed requests are counted, and those of all descriptors or of none. */
function inFluxGate(counts: Map<string, number>, hits: readonly (Hit | undefined)[]) {
  const enforced = hits.map((hit) => (hit?.isShadow ? undefined : hit))
  const sums = new Map<string, number>()
  for (const hit of enforced) if (hit) sums.set(hit.bucket, (sums.get(hit.bucket) ?? 0) + hit.hits)
  const codes = enforced.map((hit) => {
    if (hit === undefined) return 'OK'
    const wanted = Math.max(1, sums.get(hit.bucket) ?? 0)
    return (counts.get(hit.bucket) ?? 0) + wanted > hit.limit.requests_per_unit ? 'OVER_LIMIT' : 'OK'
  })
  if (!codes.includes('OVER_LIMIT'))
    for (const [bucket, sum] of sums) counts.set(bucket, (counts.get(bucket) ?? 0) + sum)
  return enforced.map((hit, i) => ({
    code: codes[i],
    remaining: hit === undefined ? 0 : hit.limit.requests_per_unit - (counts.get(hit.bucket) ?? 0),
  }))
}

// biome-ignore lint/suspicious/noExplicitAny: replies of both services, as decoded
type Status = any

/** The fields that are compared. Services differ in the other fields of a status without a limit. */
const answerOf = (statuses: readonly Status[]) =>
  statuses.map(({ code, current_limit: limit, limit_remaining: remaining }) => ({
    code,
    remaining: limit ? remaining : 0,
  }))

/** The hits of each descriptor, with the limit that the original has found. */
const hitsOf = (descriptors: readonly Descriptor[], hits: number, statuses: readonly Status[]) =>
  descriptors.map(({ entries, hits_addend }, i): Hit | undefined => {
    const limit = statuses[i].current_limit
    if (!limit) return undefined
    return {
      bucket: JSON.stringify(entries),
      limit,
      hits: Number(hits_addend?.value ?? Math.max(1, hits)),
      isShadow: limit.requests_per_unit === shadowCapacity,
    }
  })

it.skipIf(originalProgram === undefined)(
  'answers 10,000 random requests like envoyproxy/ratelimit, except for the documented differences',
  async () => {
    const seed = randomSeed()
    const configs = Array.from({ length: 20 }, (_, i) => ({
      domain: `domain-${i}`,
      descriptors: randomNodes(seededRandom(seed + i), 1),
    }))
    const imported = configs.map(importLimits)
    expect(imported.flatMap(({ errors }) => errors)).toEqual([])
    const original = await startOriginal(configs.map((config) => stringify(config)))
    const redis = await startRedis()
    onTestFinished(() => redis.stop())
    // A loaded machine must not cause decisions without Redis.
    const store = redisStore(redis.uri, { timeoutMs: 60_000 })
    onTestFinished(() => store.close())
    const rules = imported.flatMap(({ ruleSet }) => ruleSet ?? [])
    const fluxgate = await rateLimitServer(rules, { gateOptions: { store, clock: systemClock } })
    const rejected = { byBoth: 0, byOriginal: 0, byFluxGate: 0 }
    const compare = async ({ domain, descriptors: nodes }: (typeof configs)[0], random: Random) => {
      const [theirs, ours] = [new Map<string, number>(), new Map<string, number>()]
      for (let i = 0; i < 500; i++) {
        const descriptors = Array.from({ length: 1 + Math.floor(random() * 4) }, () => randomDescriptor(random, nodes))
        const hitsOfCall = random() < 0.2 ? 1 + Math.floor(random() * 3) : 0
        const where = `seed ${seed}, request ${i}: ${JSON.stringify({ domain, descriptors, hitsOfCall })}`
        const [one, other] = await Promise.all(
          [original, fluxgate].map(({ ask }) => ask(domain, descriptors, { hits_addend: hitsOfCall })),
        )
        const hits = hitsOf(descriptors, hitsOfCall, one.statuses)
        expect(answerOf(one.statuses), where).toEqual(originally(theirs, hits))
        const answers = answerOf(other.statuses)
        expect(answers, where).toEqual(inFluxGate(ours, hits))
        const isRejected = answers.some(({ code }) => code === 'OVER_LIMIT')
        expect(other.overall_code, where).toBe(isRejected ? 'OVER_LIMIT' : 'OK')
        for (const [index, hit] of hits.entries()) {
          const [theirStatus, ourStatus] = [one.statuses[index], other.statuses[index]]
          if (hit === undefined || hit.isShadow) expect(ourStatus.current_limit, where).toBeNull()
          else {
            expect(ourStatus.current_limit, where).toMatchObject(hit.limit)
            const difference = ourStatus.duration_until_reset.seconds - theirStatus.duration_until_reset.seconds
            expect(Math.abs(difference), where).toBeLessThan(60)
          }
        }
        if (one.overall_code === 'OVER_LIMIT') rejected[isRejected ? 'byBoth' : 'byOriginal']++
        else if (isRejected) rejected.byFluxGate++
      }
    }
    await Promise.all(configs.map((config, i) => compare(config, seededRandom(seed + i))))
    // Both services reject many requests and allow many.
    expect(rejected.byBoth).toBeGreaterThan(1_000)
    expect(rejected.byBoth + rejected.byOriginal).toBeLessThan(9_000)
  },
  300_000,
)
