// @ts-check
/** `fluxgate serve` of a checkout, as a process that reports its turns. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Broken } from '../measure.mjs'

/**
 * @typedef {object} MeasuredServer
 * @property {number} port
 * @property {(order: 'begin' | 'end') => Promise<import('./turns-preload.mjs').Turns>} turns
 * @property {(method: string, path: string, body?: string) => Promise<void>} ask
 * @property {() => Promise<void>} stop
 */

const preload = fileURLToPath(new URL('turns-preload.mjs', import.meta.url))

export const commandOf = (/** @type {URL} */ root) => fileURLToPath(new URL('dist/command/main.js', root))

/**
 * @param {URL} root
 * @param {string} directory
 * @param {object} rules the part of the configuration
 * @returns {Promise<MeasuredServer>}
 */
export async function startServer(root, directory, rules) {
  const config = join(directory, 'fluxgate.json')
  writeFileSync(config, JSON.stringify({ rules, server: { port: 0 } }))
  const args = ['--import', preload, commandOf(root), 'serve', '--config', config]
  const child = spawn(process.execPath, args, { cwd: directory, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
  const port = await portOf(child)
  return {
    port,
    async turns(order) {
      const answer = once(child, 'message')
      child.send(order)
      return (await answer)[0]
    },
    async ask(method, path, body) {
      const headers = { 'Content-Type': 'application/json' }
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers, body: body ?? null })
      const text = await response.text()
      if (!response.ok)
        throw new Broken(`${method} ${path} was answered with ${response.status}: ${text.slice(0, 300)}`)
    },
    async stop() {
      const ended = once(child, 'exit')
      child.kill()
      await ended
    },
  }
}

/** @returns {Promise<number>} where it listens */
function portOf(/** @type {import('node:child_process').ChildProcess} */ child) {
  return new Promise((resolve, reject) => {
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text) => {
        output += text
        const port = /listens on http:\S+:(\d+)/.exec(output)?.[1]
        if (port !== undefined) resolve(Number(port))
      })
    child.once('exit', (status) => reject(new Broken(`The server ended with status ${status}: ${output}`)))
  })
}
