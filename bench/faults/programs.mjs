// @ts-check
/** `fluxgate serve` and `fluxgate gateway` as processes that receive requests as soon as they listen. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Broken } from '../measure.mjs'

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
/** Much longer than a start takes, even next to busy loops. */
const longestStartMs = 180_000

/** @typedef {{ allowed: boolean, degraded: boolean }} Answer */

/** @type {Record<string, (url: string) => Promise<Answer>>} */
const askers = {
  async serve(url) {
    const headers = { 'Content-Type': 'application/json' }
    const response = await fetch(`${url}/api/ratelimit/check`, { method: 'POST', headers, body: '{}' })
    return /** @type {Promise<Answer>} */ (response.json())
  },
  // The gateway does not report degraded decisions; the number of allowed requests shows them.
  async gateway(url) {
    const response = await fetch(url)
    await response.arrayBuffer()
    return { allowed: response.status === 200, degraded: false }
  },
}

/**
 * Starts `processes` programs concurrently, sends `calls` requests to each and stops them.
 *
 * @param {'serve' | 'gateway'} name
 * @param {{ uri: string, prefix: string, capacity: number, calls: number, processes: number }} settings
 */
export async function startPrograms(name, { uri, prefix, capacity, calls, processes }) {
  const directory = mkdtempSync(join(tmpdir(), 'fluxgate-faults-'))
  const upstream = createServer((_, response) => void response.end('ok'))
  /** @type {import('node:child_process').ChildProcess[]} */
  const children = []
  try {
    await new Promise((resolve) => upstream.listen(0, '127.0.0.1', () => resolve(undefined)))
    const { port } = /** @type {import('node:net').AddressInfo} */ (upstream.address())
    const bands = [{ capacity, window: '30d' }]
    const rules = { id: 'api', rules: [{ id: 'all', limitScope: 'GLOBAL', bands }] }
    const route = { id: 'all', uri: `http://127.0.0.1:${port}`, predicates: ['Path=/**'], filters: ['RateLimiter=api'] }
    writeFileSync(join(directory, 'rules.yaml'), JSON.stringify(rules))
    writeFileSync(join(directory, 'fluxgate.yaml'), JSON.stringify({ gateway: { routes: [route] } }))
    const ask = /** @type {(url: string) => Promise<Answer>} */ (askers[name])
    return await Promise.all(
      Array.from({ length: processes }, async () => {
        const env = { ...process.env, FLUXGATE_REDIS_URI: uri, FLUXGATE_STORE_PREFIX: prefix }
        const child = spawn(process.execPath, [main, name, '--port', '0'], { cwd: directory, env })
        children.push(child)
        const url = await listening(child)
        const answers = await Promise.all(Array.from({ length: calls }, () => ask(url)))
        return {
          allowed: answers.filter(({ allowed }) => allowed).length,
          degraded: answers.filter(({ degraded }) => degraded).length,
        }
      }),
    )
  } finally {
    for (const child of children) child.kill('SIGKILL')
    upstream.closeAllConnections()
    upstream.close()
    rmSync(directory, { recursive: true, force: true })
  }
}

/** @returns {Promise<string>} its URL */
function listening(/** @type {import('node:child_process').ChildProcessWithoutNullStreams} */ child) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Broken(`A program did not listen within ${longestStartMs / 1_000} s.`)),
      longestStartMs,
    )
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (text) => {
      output += text
      const url = /listens on (http:\S+)/.exec(output)?.[1]
      if (url === undefined) return
      clearTimeout(timer)
      resolve(url)
    })
    let errors = ''
    child.stderr.setEncoding('utf8').on('data', (text) => {
      errors += text
    })
    child.once('exit', (status) => reject(new Broken(`A program exited with status ${status}: ${errors}`)))
  })
}
