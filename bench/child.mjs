// @ts-check
/** A process of the measurement, which is told and tells by messages, and ends with it. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Broken } from './measure.mjs'

/**
 * @param {URL} file
 * @param {readonly string[]} args
 */
export function startChild(file, args) {
  const child = fork(fileURLToPath(file), args, { execArgv: [] })
  return {
    pid: /** @type {number} */ (child.pid),
    stop: () => child.kill('SIGKILL'),
    tell: (/** @type {import('node:child_process').Serializable} */ value) => child.send(value),
    /** @returns {Promise<any>} the next thing it tells */
    async heard() {
      const ended = new AbortController()
      const stop = () => ended.abort()
      child.once('exit', stop)
      try {
        const [value] = await once(child, 'message', { signal: ended.signal })
        return value
      } catch (cause) {
        throw new Broken(`${file.pathname.split('/').slice(-2).join('/')} ended before it was done.`, { cause })
      } finally {
        child.off('exit', stop)
      }
    },
  }
}
