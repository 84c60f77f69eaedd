// @ts-check
/** A Redis of the bench's own, on a port of its own, and what it says of the work it has done. */
import { runnerImport } from 'vite'
import { Broken } from '../measure.mjs'

const harness = new URL('../../test/servers/redis-server.ts', import.meta.url)

/**
 * @typedef {import('../../test/servers/redis-server.js').RedisServer} RedisServer
 *
 * @typedef {object} Work what the server has done since it was started
 * @property {number} calls of scripts
 * @property {number} scriptUs microseconds in scripts, with the commands that they call
 * @property {number} serverUs microseconds of CPU time of its main thread, for everything: reading, parsing, answering
 */

/** @returns {Promise<RedisServer>} */
export async function startServer() {
  /** @type {{ module: typeof import('../../test/servers/redis-server.js') }} */
  const { module } = await runnerImport(harness.pathname)
  return module.startRedis()
}

/** @returns {Promise<Work>} */
export async function workOf(/** @type {RedisServer} */ server) {
  const info = String(await server.call('INFO', 'all'))
  const figure = (/** @type {RegExp} */ pattern) => Number(info.match(pattern)?.[1] ?? 0)
  const ofScripts = (/** @type {string} */ what) =>
    ['eval', 'evalsha'].reduce((sum, name) => sum + figure(new RegExp(`^cmdstat_${name}:.*?\\b${what}=(\\d+)`, 'm')), 0)
  const seconds = figure(/^used_cpu_user_main_thread:([\d.]+)/m) + figure(/^used_cpu_sys_main_thread:([\d.]+)/m)
  return { calls: ofScripts('calls'), scriptUs: ofScripts('usec'), serverUs: seconds * 1e6 }
}

export async function usedMemory(/** @type {RedisServer} */ server) {
  const found = String(await server.call('INFO', 'memory')).match(/^used_memory:(\d+)/m)
  if (!found) throw new Broken('Redis did not say how much memory it uses.')
  return Number(found[1])
}
