/** Limits that do not refill while a test runs, so that every permit can be accounted for. */
import { expect, onTestFinished } from 'vitest'
import type { RequestContext } from '../../src/core/request-context.js'
import { createFluxGate } from '../../src/gate/create-flux-gate.js'
import type { FluxGate } from '../../src/gate/flux-gate.js'
import type { RedisStoreSettings } from '../../src/redis/client/open/open-redis.js'
import type { RuleSetInput } from '../../src/rules/schema/input.js'
import { freshPrefix } from '../servers/shared-redis.js'
import { drain, type Load, startLoad, type Tally } from './load.js'

export const capacity = 600
const timeoutMs = 500
/** The deadline, and as much again for the turns of the event loop around it. */
const longestMs = 2 * timeoutMs

const window = '30d'
const rules: readonly RuleSetInput[] = [
  { id: 'one-band', rules: [{ id: 'rule', limitScope: 'USER_ID', bands: [{ capacity, window }] }] },
  {
    id: 'several-bands',
    rules: [
      {
        id: 'rule',
        limitScope: 'USER_ID',
        bands: [
          { capacity, window },
          { capacity, window, algorithm: 'SLIDING_WINDOW_LOG' },
          { capacity, window, algorithm: 'LEAKY_BUCKET' },
        ],
      },
    ],
  },
  {
    id: 'several-identities',
    rules: [
      { id: 'user', limitScope: 'USER_ID', bands: [{ capacity, window }] },
      { id: 'key', limitScope: 'API_KEY', bands: [{ capacity, window }] },
    ],
  },
]
export const ruleSetIds = rules.map(({ id }) => id)

/** In a cluster "foo" is in slot 12182, the last third, and "bar" in 5061, the first. */
export const context: RequestContext = { userId: 'foo', apiKey: 'bar' }

export interface Shared {
  readonly gate: FluxGate
  /** On the same buckets, for those who have time. */
  readonly patient: FluxGate
}

export async function openShared(where: RedisStoreSettings): Promise<Shared> {
  // What is refused here without asking says nothing about Redis.
  const store = { prefix: freshPrefix(), knownRefusals: false, ...where }
  const open = async (timeoutMs: number): Promise<FluxGate> => {
    // What is decided without Redis is not what these tests count.
    const gate = await createFluxGate({ rules, store, resilience: { timeoutMs }, onStoreFailure: 'ALLOW' })
    onTestFinished(() => gate.close())
    return gate
  }
  return { gate: await open(timeoutMs), patient: await open(20_000) }
}

/** One load for each rule set. */
export const loadAll = (gate: FluxGate, { callers = 6, pauseMs = 4 } = {}): ReadonlyMap<string, Load> =>
  new Map(
    ruleSetIds.map((ruleSetId) => [
      ruleSetId,
      startLoad(() => gate.check(context, { ruleSetId }), { callers, pauseMs }),
    ]),
  )

export const isExact = (loads: ReadonlyMap<string, Load>): boolean =>
  [...loads.values()].every(({ tally }) => tally.exactInARow >= 12)

/** For loads on `Shared.gate`: every decision ended by its deadline. */
export function expectWithinDeadline(tallies: ReadonlyMap<string, Tally>): void {
  for (const { slowestMs } of tallies.values()) expect(slowestMs).toBeLessThan(longestMs)
}

/** Stops the loads; expects that every decision was answered and none failed. */
export async function stopAll(loads: ReadonlyMap<string, Load>): Promise<ReadonlyMap<string, Tally>> {
  const tallies = new Map<string, Tally>()
  for (const [ruleSetId, load] of loads) tallies.set(ruleSetId, await load.stop())
  for (const { asked, answered, errors } of tallies.values()) {
    expect(errors).toEqual([])
    expect(answered).toBe(asked)
  }
  return tallies
}

/**
 * What the shared store has admitted before, and what it admits still, is the capacity, or less: by no more than
 * `mayBeLost`, permits that were charged and whose answers were lost. All bands of a decision were charged alike.
 */
export async function expectAccounted(
  { patient }: Shared,
  tallies: ReadonlyMap<string, Tally>,
  mayBeLost: number,
): Promise<void> {
  for (const [ruleSetId, { admitted }] of tallies) {
    const { bands } = await patient.check(context, { ruleSetId, peek: true })
    expect(new Set(bands.map(({ remaining }) => remaining)).size).toBe(1)
    const total = admitted + (await drain((permits) => patient.check(context, { ruleSetId, permits })))
    expect(total).toBeLessThanOrEqual(capacity)
    expect(total).toBeGreaterThanOrEqual(capacity - mayBeLost)
  }
}
