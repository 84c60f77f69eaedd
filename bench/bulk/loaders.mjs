// @ts-check
/** Programs that load the same commands into the same server; each load is a separate process. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Broken } from '../measure.mjs'

const child = fileURLToPath(new URL('load-child.mjs', import.meta.url))
const importChild = fileURLToPath(new URL('import-child.mjs', import.meta.url))

/**
 * @typedef {object} Load
 * @property {number} seconds
 * @property {number} megabytes peak memory; NaN for redis-cli
 *
 * @typedef {object} Loader
 * @property {string} name
 * @property {() => Promise<Load>} load
 */

/** @type {(name: string, uri: string, file: string, how: 'fast' | 'gentle', records: number) => Loader} */
export const fluxGateBulk = (...load) => nodeLoader(child, ...load)

/**
 * Imports overrides from CSV, until they are in effect.
 *
 * @type {(name: string, uri: string, file: string, how: 'fast' | 'gentle', records: number) => Loader}
 */
export const fluxGateImport = (...load) => nodeLoader(importChild, ...load)

/** @type {(script: string, name: string, uri: string, file: string, how: 'fast' | 'gentle', records: number) => Loader} */
function nodeLoader(script, name, uri, file, how, records) {
  return {
    name,
    async load() {
      const startedAt = performance.now()
      const { stdout } = await promisify(execFile)(process.execPath, [script, uri, file, how])
      const seconds = (performance.now() - startedAt) / 1000
      const { done, megabytes, stopped } = JSON.parse(stdout)
      if (done !== records) throw new Broken(`${name} loaded ${done} of ${records} records. ${stopped}`)
      return { seconds, megabytes }
    },
  }
}

/** @type {(name: string, port: number, file: string, records: number) => Loader} */
export function redisCliPipe(name, port, file, records) {
  return {
    name,
    async load() {
      const startedAt = performance.now()
      const process = spawn('redis-cli', ['-p', String(port), '--pipe'], {
        stdio: [openSync(file, 'r'), 'pipe', 'inherit'],
      })
      let text = ''
      process.stdout?.on('data', (chunk) => {
        text += chunk
      })
      await once(process, 'close')
      const seconds = (performance.now() - startedAt) / 1000
      if (!text.includes(`errors: 0, replies: ${records}`)) throw new Broken(`${name} did not load everything: ${text}`)
      return { seconds, megabytes: Number.NaN }
    },
  }
}
