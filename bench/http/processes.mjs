// @ts-check
/** Processes of the measurement, which are told and tell by messages and end with it. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Broken } from '../measure.mjs'

/**
 * @typedef {object} Listening
 * @property {string} name
 * @property {number} port
 * @property {number} pid of the process that does the work
 * @property {string} [request] what it is asked, as it stands on the wire; the usual GET unless given
 * @property {number} [connections] over which it is asked, if not over as many as the others
 * @property {() => void} stop
 */

/** @type {(child: import('node:child_process').ChildProcess, file: string) => Promise<any>} */
async function message(child, file) {
  const ended = new AbortController()
  const stop = () => ended.abort()
  child.once('exit', stop)
  try {
    const [value] = await once(child, 'message', { signal: ended.signal })
    return value
  } catch (cause) {
    throw new Broken(`bench/http/${file} ended before it was done.`, { cause })
  } finally {
    child.off('exit', stop)
  }
}

const forked = (/** @type {string} */ file, /** @type {readonly string[]} */ args) =>
  fork(fileURLToPath(new URL(file, import.meta.url)), args, { execArgv: [] })

/**
 * A program that tells its port once it listens.
 *
 * @param {string} name
 * @param {string} file
 * @param {readonly string[]} args
 * @returns {Promise<Listening>}
 */
export async function startProgram(name, file, ...args) {
  const child = forked(file, args)
  const { port } = await message(child, file)
  return { name, port, pid: /** @type {number} */ (child.pid), stop: () => child.kill('SIGKILL') }
}

/** @returns {Promise<{ ask(order: import('./load.mjs').Order): Promise<import('./load.mjs').Outcome>, stop(): void }>} */
export async function startLoad() {
  const child = forked('load.mjs', [])
  await message(child, 'load.mjs')
  return {
    ask(order) {
      child.send(order)
      return message(child, 'load.mjs')
    },
    stop: () => child.kill('SIGKILL'),
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
