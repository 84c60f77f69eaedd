import { systemClock } from '../../core/clock.js'
import type { Decision } from '../../core/decision.js'
import type { RuleSet } from '../../core/rule.js'
import { createFluxGate } from '../../gate/create-flux-gate.js'
import type { FluxGateOptions } from '../../gate/options.js'

/** Requests of one caller that show what rules do. Each is left out if the rules have nothing simple to show. */
export interface DemoHints {
  readonly allowed?: string
  /** The last of `calls` in a row is refused. */
  readonly refused?: { readonly path: string; readonly calls: number }
  /** From the second on, requests are held. */
  readonly held?: string
}

/** More than anybody types. */
const mostCalls = 10
const mostPaths = 20
const mostRules = 200

/**
 * Finds out by asking a gate of its own, at one instant, so that what is printed is true of whichever rules were given
 * and the buckets of the real gate stay full.
 */
export async function findDemoHints(ruleSets: readonly RuleSet[], options: FluxGateOptions): Promise<DemoHints> {
  const rules = ruleSets.flatMap((set) => set.rules)
  if (rules.length > mostRules) return {}
  const paths = [...new Set(rules.map(({ path }) => path).filter((path) => /^\/[\w./-]*$/.test(path)))]
  const trials: Trial[] = []
  for (const path of paths.slice(0, mostPaths)) trials.push(await tryPath(path, ruleSets, options))
  const { path: allowed } = trials.find(({ first }) => first.allowed && first.delayMs === 0 && first.limit > 0) ?? {}
  const { path: held } = trials.find(({ second }) => second.delayMs > 0 && second.delayMs <= 2_000) ?? {}
  // The one that refuses longest is the one that still refuses when somebody has read this.
  const [longest] = trials.filter(({ refused }) => refused !== undefined).sort((a, b) => waitOf(b) - waitOf(a))
  return {
    ...(allowed !== undefined && { allowed }),
    ...(longest !== undefined && { refused: { path: longest.path, calls: longest.decisions } }),
    ...(held !== undefined && { held }),
  }
}

interface Trial {
  readonly path: string
  readonly decisions: number
  readonly first: Decision
  readonly second: Decision
  /** Undefined if none was, or if one was held before. */
  readonly refused: Decision | undefined
}

const waitOf = ({ refused }: Trial): number => refused?.retryAfterMs ?? 0

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
  for (let isOpen = true; isOpen && decisions.length < mostCalls; ) {
    const decision = await gate.check({ clientIp: '127.0.0.1', method: 'GET', path })
    decisions.push(decision)
    isOpen = decision.allowed && decision.delayMs === 0
  }
  await gate.close()
  const last = decisions.at(-1) as Decision
  const [first = last, second = last] = decisions
  return { path, decisions: decisions.length, first, second, refused: last.allowed ? undefined : last }
}
