import { otherRules } from './rule-counters.js'

/** Bounds the memory of a long-running process whose rules change often. */
const maxRules = 5_000

interface BanCount {
  readonly ruleSetId: string
  readonly ruleId: string
  count: number
}

/** Bans by rule. */
export class BanCounts {
  readonly #byRule = new Map<string, BanCount>()

  add(ruleSetId: string, ruleId: string): void {
    this.#count(ruleSetId, ruleId).count++
  }

  /** Starts the count of a rule at 0, so that the increase by its first ban is visible. */
  start(ruleSetId: string, ruleId: string): void {
    this.#count(ruleSetId, ruleId)
  }

  counted(): readonly BanCount[] {
    return [...this.#byRule.values()]
  }

  #count(ruleSetId: string, ruleId: string): BanCount {
    const name = JSON.stringify([ruleSetId, ruleId])
    const known = this.#byRule.get(name)
    if (known !== undefined) return known
    if (this.#byRule.size >= maxRules && ruleId !== otherRules) return this.#count(otherRules, otherRules)
    const started = { ruleSetId, ruleId, count: 0 }
    this.#byRule.set(name, started)
    return started
  }
}
