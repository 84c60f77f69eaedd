// @ts-check
/** A Redis server of the benchmark on its own port, and its statistics. */
import { runnerImport } from 'vite'
import { Broken } from '../measure.mjs'

const harness = new URL('../../test/servers/redis-server.ts', import.meta.url)

/**
 * @typedef {import('../../test/servers/redis-server.js').RedisServer} RedisServer
 *
 * @typedef {object} Work totals since the start of the server
 * @property {number} calls script calls
 * @property {number} scriptUs microseconds in scripts, including the commands that they call
 * @property {number} serverUs CPU time of the main thread in microseconds, including reading, parsing and replying
 */

/** @returns {Promise<RedisServer>} */
export async function startServer(
  /** @type {import('../../test/servers/redis-server.js').RedisOptions} */ options = {},
) {
  /** @type {{ module: typeof import('../../test/servers/redis-server.js') }} */
  const { module } = await runnerImport(harness.pathname)
  return module.startRedis(options)
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
  if (!found) throw new Broken('INFO memory of Redis contains no used_memory.')
  return Number(found[1])
}
