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
    const name = JSON.stringify([ruleSetId, ruleId])
    const known = this.#byRule.get(name)
    if (known !== undefined) known.count += 1
    else if (this.#byRule.size < maxRules || ruleId === otherRules)
      this.#byRule.set(name, { ruleSetId, ruleId, count: 1 })
    else this.add(otherRules, otherRules)
  }

  counted(): readonly BanCount[] {
    return [...this.#byRule.values()]
  }
}
