// @ts-check
/** A child process of the benchmark that communicates by messages. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Broken } from './measure.mjs'
import { stopOnExit } from './stop-on-exit.mjs'

/**
 * @param {URL} file
 * @param {readonly string[]} args
 * @param {readonly string[]} [nodeOptions]
 */
export function startChild(file, args, nodeOptions = []) {
  const child = fork(fileURLToPath(file), args, { execArgv: [...nodeOptions] })
  return {
    pid: /** @type {number} */ (child.pid),
    stop: stopOnExit(() => void child.kill('SIGKILL')),
    tell: (/** @type {import('node:child_process').Serializable} */ value) => child.send(value),
    /** @returns {Promise<any>} the next message of the child */
    async heard() {
      const ended = new AbortController()
      const stop = () => ended.abort()
      child.once('exit', stop)
      try {
        const [value] = await once(child, 'message', { signal: ended.signal })
        return value
      } catch (cause) {
        throw new Broken(`${file.pathname.split('/').slice(-2).join('/')} exited before it had finished.`, { cause })
      } finally {
        child.off('exit', stop)
      }
    },
  }
}
