// @ts-check
/**
 * Concurrent callers. A caller sends its next request when it has received its result, until the time is over.
 *
 * @typedef {object} Asker
 * @property {string} name
 * @property {(key: string) => Promise<unknown>} ask may reject with a value that is not an Error for a rejected request
 * @property {(answer: any) => boolean} isAllowed
 * @property {() => unknown} close
 *
 * @typedef {object} Answers
 * @property {number} decisions
 * @property {number} allowed
 * @property {readonly number[]} waitsMs of every `measuredEvery`th decision of each caller
 * @property {number} elapsedMs
 */

/** Minimum number of results between two turns of the event loop; one per caller if there are more callers. */
const leastBetweenTurns = 64

/** Reading the clock takes as long as half a local decision, so only some waits are measured. */
const measuredEvery = 8

/**
 * @param {Asker} asker
 * @param {readonly string[]} keys requested in this order, repeatedly
 * @param {number} concurrency
 * @param {number} seconds
 * @returns {Promise<Answers>}
 */
export async function keepAsking({ ask, isAllowed }, keys, concurrency, seconds) {
  const nextTurn = regularTurns(Math.max(concurrency, leastBetweenTurns))
  const startedAt = performance.now()
  const endsAt = startedAt + seconds * 1000
  let asked = 0
  let decisions = 0
  let allowed = 0
  let isOver = false
  /** @type {number[]} */
  const waitsMs = []
  const caller = async (/** @type {unknown} */ _, /** @type {number} */ index) => {
    // Callers start at different places, so that the measured decisions are spread over time.
    for (let i = index; !isOver; i++) {
      const isMeasured = i % measuredEvery === 0
      const askedAt = isMeasured ? performance.now() : 0
      try {
        if (isAllowed(await ask(/** @type {string} */ (keys[asked++ % keys.length])))) allowed++
      } catch (rejection) {
        if (rejection instanceof Error) throw rejection
      }
      decisions++
      if (isMeasured) {
        const answeredAt = performance.now()
        waitsMs.push(answeredAt - askedAt)
        isOver = answeredAt >= endsAt
      }
      const turn = nextTurn()
      if (turn) await turn
    }
  }
  await Promise.all(Array.from({ length: concurrency }, caller))
  return { decisions, allowed, waitsMs, elapsedMs: performance.now() - startedAt }
}

/**
 * Local results would starve timers and sockets, which requests to a server never do. All callers therefore wait for a turn
 * of the event loop at regular intervals.
 */
function regularTurns(/** @type {number} */ every) {
  let results = 0
  /** @type {Promise<void> | undefined} */
  let turn
  return () => {
    if (++results % every === 0)
      turn ??= new Promise(setImmediate).then(() => {
        turn = undefined
      })
    return turn
  }
}
