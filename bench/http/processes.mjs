// @ts-check
/** Processes of the measured servers and of the load generator. */
import { readFileSync } from 'node:fs'
import { startChild } from '../child.mjs'

/**
 * @typedef {object} Listening
 * @property {string} name
 * @property {number} port
 * @property {number} pid of the process that does the work
 * @property {string} [request] raw HTTP request; default: the usual GET
 * @property {number} [connections] number of connections, if it differs from the others
 * @property {() => void} stop
 */

/**
 * Starts a program that sends its port once it listens.
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

/** Returns the CPU time of all threads of a process in microseconds; NaN if the system does not report it. */
export function cpuTimeUs(/** @type {number} */ pid) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    return ((Number(fields[11]) + Number(fields[12])) * 1e6) / ticksPerSecond
  } catch {
    return Number.NaN
  }
}
