// @ts-check
/**
 * FluxGate and envoyproxy/ratelimit as rate limit services, each with its own Redis and with the same configuration.
 *
 * @typedef {object} Service
 * @property {string} name
 * @property {number} grpcPort
 * @property {readonly number[]} pids of the service and of its Redis
 * @property {() => Promise<unknown>} stopRedis
 * @property {() => Promise<unknown>} stop
 */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { startServer } from '../redis/server.mjs'
import { startRatelimit } from '../services/ratelimit.mjs'
import { freePort, spawned } from '../services/spawned.mjs'

const main = fileURLToPath(new URL('../../dist/command/main.js', import.meta.url))

/** One limit per hour for each value of each key, in the language of envoyproxy/ratelimit. */
const limits = (/** @type {readonly string[]} */ keys, /** @type {number} */ capacity) =>
  `domain: edge\ndescriptors:\n${keys
    .map((key) => `  - key: ${key}\n    rate_limit: { unit: hour, requests_per_unit: ${capacity} }\n`)
    .join('')}`

/** @type {(keys: readonly string[], capacity: number) => Promise<Service>} */
export async function fluxGate(keys, capacity) {
  const redis = await startServer()
  const [port, grpcPort] = [await freePort(), await freePort()]
  const importing = [main, 'rules', 'import', '--from', 'envoy', '-']
  const rules = execFileSync(process.execPath, importing, { input: limits(keys, capacity), encoding: 'utf8' })
  const service = await spawned(process.execPath, {
    port: grpcPort,
    args: () => [main, 'serve', '--port', String(port), '--grpc-port', String(grpcPort)],
    env: () => ({ FLUXGATE_REDIS_URI: redis.uri }),
    files: () => ({ 'rules.yaml': rules }),
  })
  return {
    name: 'FluxGate',
    grpcPort,
    pids: [service.pid, redis.pid],
    stopRedis: () => redis.stop(),
    async stop() {
      service.stop()
      await redis.stop()
    },
  }
}

/** @type {(file: string, keys: readonly string[], capacity: number) => Promise<Service>} */
export async function original(file, keys, capacity) {
  return { name: 'envoyproxy/ratelimit', ...(await startRatelimit(file, limits(keys, capacity))) }
}
