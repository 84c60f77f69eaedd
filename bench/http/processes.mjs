// @ts-check
/** Servers to measure, and who asks them: a process each. */
import { readFileSync } from 'node:fs'
import { startChild } from '../child.mjs'

/**
 * @typedef {object} Listening
 * @property {string} name
 * @property {number} port
 * @property {number} pid of the process that does the work
 * @property {string} [request] what it is asked, as it stands on the wire; the usual GET unless given
 * @property {number} [connections] over which it is asked, if not over as many as the others
 * @property {() => void} stop
 */

/**
 * A program that tells its port once it listens.
 *
 * @param {string} name
 * @param {string} file
 * @param {readonly string[]} args
 * @returns {Promise<Listening>}
 */
export async function startProgram(name, file, ...args) {
  const { pid, stop, heard } = startChild(new URL(file, import.meta.url), args)
  const { port } = await heard()
  return { name, port, pid, stop }
}

/** @returns {Promise<{ ask(order: import('./load.mjs').Order): Promise<import('./load.mjs').Outcome>, stop(): void }>} */
export async function startLoad() {
  const { stop, tell, heard } = startChild(new URL('load.mjs', import.meta.url), [])
  await heard()
  return {
    ask(order) {
      tell(order)
      return heard()
    },
    stop,
  }
}

const ticksPerSecond = 100

/** Microseconds of CPU time that a process has used, all its threads; NaN where the system does not say. */
export function cpuTimeUs(/** @type {number} */ pid) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    return ((Number(fields[11]) + Number(fields[12])) * 1e6) / ticksPerSecond
  } catch {
    return Number.NaN
  }
}
