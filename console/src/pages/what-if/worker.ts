/** Replays an access log against two versions of a rule set, with the code of `fluxgate simulate --from`. */
import { takeHolds } from '../../../../src/core/algorithm-traits.js'
import { compileSnapshot } from '../../../../src/core/decision/snapshot.js'
import type { Decision } from '../../../../src/core/decision.js'
import type { Rule, RuleSet } from '../../../../src/core/rule.js'
import { WaitingRoom } from '../../../../src/core/waiting/waiting-room.js'
import { StandaloneHandler } from '../../../../src/handlers/standalone.js'
import { parseRuleSets } from '../../../../src/rules/schema/parse-rules.js'
import { readLines } from '../../../../src/simulate/recorded/lines.js'
import { recordedTraffic } from '../../../../src/simulate/recorded/traffic.js'
import { RulesMeter, type RulesSimulation } from '../../../../src/simulate/rules-meter.js'
import { type VirtualClock, virtualClock } from '../../../../src/simulate/virtual-clock.js'
import { memoryStore } from '../../../../src/stores/memory/memory-store.js'
import type { Comparison, KeyDifference, WhatIfReply, WhatIfRequest } from './protocol.js'

const say = (reply: WhatIfReply): void => postMessage(reply)

addEventListener('message', ({ data }: MessageEvent<WhatIfRequest>) => {
  compare(data).then(
    (comparison) => say({ kind: 'done', comparison }),
    (error: unknown) => say({ kind: 'failed', message: error instanceof Error ? error.message : String(error) }),
  )
})

/** A log has no durations, so rules that limit requests in progress are left out. */
function ruleSetsOf(document: unknown, leftOut: Set<string>): RuleSet[] {
  return parseRuleSets(document).map((set) => {
    const [held, rates] = [set.rules.filter(hasHolds), set.rules.filter((rule) => !hasHolds(rule))]
    for (const { id } of held) leftOut.add(id)
    return { ...set, rules: rates }
  })
}

const hasHolds = ({ bands }: Rule): boolean => takeHolds(bands)

function handlerOf(ruleSets: readonly RuleSet[], clock: VirtualClock): StandaloneHandler {
  const snapshot = compileSnapshot(ruleSets, {
    maxWaitMs: 5_000,
    resetBucketsOnReload: true,
    resets: () => 0,
  })
  const store = memoryStore({ clock })
  return new StandaloneHandler({
    snapshot,
    store,
    localStore: store,
    room: new WaitingRoom(100, clock),
    clock,
    missingRuleBehavior: 'ALLOW',
    onStoreFailure: 'LOCAL',
    localShare: 1,
  })
}

const progressMs = 100
const maxKeys = 100_000

async function compare({ file, current, changed }: WhatIfRequest): Promise<Comparison> {
  const startedAt = performance.now()
  const clock = virtualClock()
  const leftOut = new Set<string>()
  const now = handlerOf(ruleSetsOf(current, leftOut), clock)
  const later = handlerOf(ruleSetsOf(changed, leftOut), clock)
  const meters = [new RulesMeter(), new RulesMeter()] as const
  const keys = new Map<string, { key: string; ruleId: string; nowOnly: number; thenOnly: number }>()
  let read = 0
  let shownAt = startedAt
  const chunks = async function* (): AsyncGenerator<Uint8Array> {
    const reader = (
      file.name.endsWith('.gz') ? file.stream().pipeThrough(new DecompressionStream('gzip')) : file.stream()
    ).getReader()
    for (;;) {
      const { value, done } = await reader.read()
      if (done) return
      read += value.length
      yield value
      if (performance.now() - shownAt < progressMs) continue
      shownAt = performance.now()
      say({ kind: 'progress', read, lines: report.lines })
    }
  }
  const { arrivals, report } = recordedTraffic(readLines(chunks()), file.name)
  const counts = { requests: 0, both: 0, nowOnly: 0, thenOnly: 0 }
  for await (const { at, context = {} } of arrivals) {
    clock.moveTo(at)
    const before = now.decide(context)
    const one = before instanceof Promise ? await before : before
    meters[0].record(at, one)
    const after = later.decide(context)
    const other = after instanceof Promise ? await after : after
    meters[1].record(at, other)
    counts.requests += 1
    if (one.allowed && other.allowed) continue
    if (one.allowed === other.allowed) counts.both += 1
    else {
      counts[one.allowed ? 'thenOnly' : 'nowOnly'] += 1
      note(keys, one.allowed ? other : one, one.allowed ? 'thenOnly' : 'nowOnly')
    }
  }
  const [first, second] = [meters[0].result(), meters[1].result()]
  return {
    ...report,
    ...counts,
    leftOutRules: [...leftOut],
    rules: rulesOf(first, second),
    keys: [...keys.values()]
      .sort((a, b) => b.nowOnly + b.thenOnly - (a.nowOnly + a.thenOnly))
      .slice(0, 50) as KeyDifference[],
    ...seriesOf(first, second),
    tookMs: performance.now() - startedAt,
  }
}

function note(keys: Map<string, KeyDifference>, { key, ruleId }: Decision, name: 'nowOnly' | 'thenOnly'): void {
  const id = `${ruleId}/${key}`
  const known = keys.get(id) as { nowOnly: number; thenOnly: number } | undefined
  if (known !== undefined) known[name] += 1
  else if (keys.size < maxKeys)
    keys.set(id, { key: key ?? '–', ruleId: ruleId ?? '–', nowOnly: 0, thenOnly: 0, [name]: 1 })
}

function rulesOf(one: RulesSimulation, other: RulesSimulation): Comparison['rules'] {
  const ids = new Set([...one.rules, ...other.rules].map(({ ruleId }) => ruleId))
  return [...ids].map((ruleId) => ({
    ruleId,
    before: one.rules.find((rule) => rule.ruleId === ruleId),
    after: other.rules.find((rule) => rule.ruleId === ruleId),
  }))
}

/** Both runs have the same arrivals, and therefore the same buckets of time; a longer delay may add some at the end. */
function seriesOf(one: RulesSimulation, other: RulesSimulation) {
  const isSame = one.bucketMs === other.bucketMs
  const length = isSame ? Math.max(one.total.buckets.length, other.total.buckets.length) : 0
  const index = Array.from({ length }, (_, i) => i)
  return {
    times: index.map((i) => (one.startAtMs + i * one.bucketMs) / 1_000),
    rejectedNow: index.map((i) => one.total.buckets[i]?.rejected ?? 0),
    rejectedThen: index.map((i) => other.total.buckets[i]?.rejected ?? 0),
  }
}
