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
 * @property {number} allowed
 * @property {readonly number[]} waitsMs one per result
 * @property {number} elapsedMs
 */

/** Minimum number of results between two turns of the event loop; one per caller if there are more callers. */
const leastBetweenTurns = 64

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
  let allowed = 0
  /** @type {number[]} */
  const waitsMs = []
  const caller = async () => {
    let askedAt = startedAt
    while (askedAt < endsAt) {
      try {
        if (isAllowed(await ask(/** @type {string} */ (keys[asked++ % keys.length])))) allowed++
      } catch (rejection) {
        if (rejection instanceof Error) throw rejection
      }
      // One reading per result: reading the clock takes as long as half a local decision.
      const answeredAt = performance.now()
      waitsMs.push(answeredAt - askedAt)
      askedAt = answeredAt
      const turn = nextTurn()
      if (turn) {
        await turn
        askedAt = performance.now()
      }
    }
  }
  await Promise.all(Array.from({ length: concurrency }, caller))
  return { allowed, waitsMs, elapsedMs: performance.now() - startedAt }
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
