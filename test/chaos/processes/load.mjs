// @ts-check
/** The requests of one process: their number, paths, users and permits follow from a seed. */
import { seededRandom } from '../../../dist/core/seeded-random.js'

/**
 * @typedef {{ seed: number, tag: string, perSecond: number, paths: readonly string[] }} LoadPlan
 * @typedef {{ path: string, user: string, api: string, permits: number }} Request
 * @typedef {{ allowed: boolean, degraded: boolean, delayMs: number, reason: string, decidedBy: string,
 *   charges: readonly { rule: string, limit: number, resetAt: number }[] }} Answer
 * @typedef {Request & { startAt: number, endAt: number, error?: string } & Partial<Answer>} Asked
 */

const turnMs = 10
/** A process that could not run for a while does not catch up: its backlog is at most this many requests. */
const largestBurst = 10

const nowUs = () => Number(process.hrtime.bigint() / 1_000n)

export class Load {
  /** @type {Map<number, { startAt: number, path: string }>} */
  #pending = new Map()
  #count = 0
  /** @type {NodeJS.Timeout | undefined} */
  #timer
  #ask
  #onAsked

  constructor(/** @type {(request: Request) => Promise<Answer>} */ ask, /** @type {(asked: Asked) => void} */ onAsked) {
    this.#ask = ask
    this.#onAsked = onAsked
  }

  /** Requests without an answer. */
  get pending() {
    return [...this.#pending.values()]
  }

  start(/** @type {LoadPlan} */ { seed, tag, perSecond, paths }) {
    this.stop()
    const random = seededRandom(seed)
    const pick = (/** @type {readonly string[]} */ values) => values[Math.floor(random() * values.length)] ?? ''
    let due = 1
    let lastAt = performance.now()
    const turn = () => {
      const at = performance.now()
      due = Math.min(largestBurst, due + ((at - lastAt) * perSecond) / 1_000)
      lastAt = at
      for (; due >= 1; due--) {
        const user = `${tag}-${random() < 0.6 ? 0 : random() < 0.6 ? 1 : 2}`
        const permits = random() < 0.85 ? 1 : random() < 0.7 ? 2 : 3
        this.#issue({ path: pick(paths), user, api: `${tag}-key`, permits })
      }
    }
    turn()
    this.#timer = setInterval(turn, turnMs)
  }

  stop() {
    clearInterval(this.#timer)
  }

  async #issue(/** @type {Request} */ request) {
    const id = ++this.#count
    const startAt = nowUs()
    this.#pending.set(id, { startAt, path: request.path })
    /** @type {Partial<Asked>} */
    let answer
    try {
      answer = await this.#ask(request)
    } catch (error) {
      answer = { error: String(error) }
    }
    this.#pending.delete(id)
    this.#onAsked({ ...request, ...answer, startAt, endAt: nowUs() + 1 })
  }
}

/** Extracts the fields of a decision that the checker needs. */
export const answerOf = (/** @type {any} */ decision, /** @type {string} */ decidedBy) => ({
  allowed: decision.allowed,
  degraded: decision.degraded,
  delayMs: decision.delayMs,
  reason: decision.reason,
  decidedBy,
  charges: decision.bands.map((/** @type {any} */ { ruleId, limit, resetAt }) => ({ rule: ruleId, limit, resetAt })),
})
