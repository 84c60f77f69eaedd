// @ts-check
/**
 * So many callers at once, each of which asks again as soon as it has its answer, until the time is over.
 *
 * @typedef {object} Asker
 * @property {string} name
 * @property {(key: string) => Promise<unknown>} ask may reject with something that is not an error: a refusal
 * @property {(answer: any) => boolean} isAllowed
 * @property {() => unknown} close
 *
 * @typedef {object} Answers
 * @property {number} allowed
 * @property {readonly number[]} waitsMs one per answer
 * @property {number} elapsedMs
 */

/** So many answers in a row may come without a turn of the event loop between them, or one per caller. */
const breathless = 64

/**
 * @param {Asker} asker
 * @param {readonly string[]} keys are asked for in this order, over and over
 * @param {number} concurrency
 * @param {number} seconds
 * @returns {Promise<Answers>}
 */
export async function keepAsking({ ask, isAllowed }, keys, concurrency, seconds) {
  const breathe = breathing(Math.max(concurrency, breathless))
  const startedAt = performance.now()
  const endsAt = startedAt + seconds * 1000
  let asked = 0
  let allowed = 0
  /** @type {number[]} */
  const waitsMs = []
  const caller = async () => {
    for (let askedAt = startedAt; askedAt < endsAt; askedAt = performance.now()) {
      try {
        if (isAllowed(await ask(/** @type {string} */ (keys[asked++ % keys.length])))) allowed++
      } catch (refusal) {
        if (refusal instanceof Error) throw refusal
      }
      waitsMs.push(performance.now() - askedAt)
      const breath = breathe()
      if (breath) await breath
    }
  }
  await Promise.all(Array.from({ length: concurrency }, caller))
  return { allowed, waitsMs, elapsedMs: performance.now() - startedAt }
}

/**
 * Answers that are known without asking anybody would keep timers and sockets from their turn, as requests to a server
 * never do. So all callers wait for the event loop now and then.
 */
function breathing(/** @type {number} */ every) {
  let answers = 0
  /** @type {Promise<void> | undefined} */
  let breath
  return () => {
    if (++answers % every === 0)
      breath ??= new Promise(setImmediate).then(() => {
        breath = undefined
      })
    return breath
  }
}
