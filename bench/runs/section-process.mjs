// @ts-check
/**
 * One run of one section, in its own process: compiled code, heap and connections of earlier runs cannot affect it.
 * Argument: name of the section. Receives the effort; sends `{ progress }` any number of times, and then `{ findings }` or
 * `{ broken }`.
 */
import { Broken } from '../measure.mjs'
import { sections } from '../sections/index.mjs'

// Exits in order, so that its child processes are stopped.
process.once('SIGTERM', () => process.exit(1))
process.once('message', async (/** @type {import('./effort.mjs').Effort} */ effort) => {
  const send = (/** @type {object} */ message) => new Promise((resolve) => process.send?.(message, resolve))
  try {
    const section = await /** @type {() => Promise<import('../results/report.mjs').Section>} */ (
      sections[process.argv[2] ?? '']
    )()
    const progress = (/** @type {string} */ text) => void process.send?.({ progress: text })
    await send({ findings: await section({ ...effort, progress }) })
  } catch (error) {
    await send({
      broken: error instanceof Broken ? error.message : error instanceof Error ? error.stack : String(error),
    })
  }
  process.exit()
})
