import { systemClock } from '../../core/clock.js'
import type { Decision } from '../../core/decision.js'
import type { RuleSet } from '../../core/rule.js'
import { createFluxGate } from '../../gate/create-flux-gate.js'
import type { FluxGateOptions } from '../../gate/options.js'

/** Paths of example requests that demonstrate the rules. A hint is missing if no simple request demonstrates it. */
export interface DemoExamples {
  readonly allowed?: string
  /** The last of `calls` consecutive requests is rejected. */
  readonly rejected?: { readonly path: string; readonly calls: number }
  /** Requests after the first are delayed. */
  readonly held?: string
}

/** Bounds the number of trial requests and the length of the printed examples. */
const maxCalls = 10
const maxPaths = 20
const maxRules = 200

/**
 * Finds hints by checking trial requests with a separate gate and a frozen clock. The hints are therefore correct for any rules,
 * and the buckets of the real gate stay full.
 */
export async function findDemoExamples(ruleSets: readonly RuleSet[], options: FluxGateOptions): Promise<DemoExamples> {
  const rules = ruleSets.flatMap((set) => set.rules)
  if (rules.length > maxRules) return {}
  const paths = [...new Set(rules.map(({ path }) => path).filter((path) => /^\/[\w./-]*$/.test(path)))]
  const trials: Trial[] = []
  for (const path of paths.slice(0, maxPaths)) trials.push(await tryPath(path, ruleSets, options))
  const { path: allowed } = trials.find(({ first }) => first.allowed && first.delayMs === 0 && first.limit > 0) ?? {}
  const { path: held } = trials.find(({ second }) => second.delayMs > 0 && second.delayMs <= 2_000) ?? {}
  // The longest rejection is most likely still in effect when the user tries it.
  const [longest] = trials.filter(({ rejected }) => rejected !== undefined).sort((a, b) => waitOf(b) - waitOf(a))
  return {
    ...(allowed !== undefined && { allowed }),
    ...(longest !== undefined && { rejected: { path: longest.path, calls: longest.decisions } }),
    ...(held !== undefined && { held }),
  }
}

interface Trial {
  readonly path: string
  readonly decisions: number
  readonly first: Decision
  readonly second: Decision
  /** The rejection; undefined if there was none, or if a request was delayed before it. */
  readonly rejected: Decision | undefined
}

const waitOf = ({ rejected }: Trial): number => rejected?.retryAfterMs ?? 0

async function tryPath(path: string, ruleSets: readonly RuleSet[], options: FluxGateOptions): Promise<Trial> {
  const startedAt = systemClock.now()
  const { config: _, store: __, ...same } = options
  const gate = await createFluxGate({
    ...same,
    rules: { source: 'the rules', load: async () => ruleSets },
    reload: { strategy: 'NONE' },
    clock: { now: () => startedAt, schedule: () => () => {} },
  })
  const decisions: Decision[] = []
  for (let isOpen = true; isOpen && decisions.length < maxCalls; ) {
    const decision = await gate.check({ clientIp: '127.0.0.1', method: 'GET', path })
    decisions.push(decision)
    isOpen = decision.allowed && decision.delayMs === 0
  }
  await gate.close()
  const last = decisions.at(-1) as Decision
  const [first = last, second = last] = decisions
  return { path, decisions: decisions.length, first, second, rejected: last.allowed ? undefined : last }
}
