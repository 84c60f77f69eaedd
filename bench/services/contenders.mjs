// @ts-check
/**
 * Rate-limiting services that decide over HTTP, each with one limit per key that is never reached, and a request for each
 * of the same keys. All of them run as one process and may use all cores.
 *
 * @typedef {object} Running
 * @property {string} name
 * @property {number} port
 * @property {readonly number[]} pids of the service and of its Redis
 * @property {readonly string[]} requests raw HTTP requests, used in turn
 * @property {string} grants text in the body of a response that allows the request; empty if the status is enough
 * @property {() => unknown} stop
 */
import { fileURLToPath } from 'node:url'
import { startServer } from '../redis/server.mjs'
import { program } from './install.mjs'
import { startNginx } from './nginx.mjs'
import { startRatelimit } from './ratelimit.mjs'
import { freePort, spawned } from './spawned.mjs'

const keys = Array.from({ length: 1_000 }, (_, i) => `account-${i}`)
const capacity = 1_000_000_000

/** @type {(path: string, body: object) => string} */
function post(path, body) {
  const text = JSON.stringify(body)
  return `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
}

/** @type {(name: string, withRedis: boolean) => Promise<Running>} */
export async function fluxGateServe(name, withRedis) {
  const redis = withRedis ? await startServer() : undefined
  const port = await freePort()
  const main = fileURLToPath(new URL('../../dist/command/main.js', import.meta.url))
  const rules = {
    id: 'api',
    rules: [{ id: 'accounts', limitScope: 'API_KEY', bands: [{ capacity, window: '1h' }] }],
  }
  const service = await spawned(process.execPath, {
    port,
    args: () => [main, 'serve', '--port', String(port)],
    env: () => (redis === undefined ? {} : { FLUXGATE_REDIS_URI: redis.uri }),
    files: () => ({ 'rules.yaml': JSON.stringify(rules) }),
  })
  return {
    name,
    port,
    pids: [service.pid, ...(redis === undefined ? [] : [redis.pid])],
    requests: keys.map((apiKey) =>
      post('/api/ratelimit/check', { ruleSetId: 'api', apiKey, endpoint: '/', method: 'GET' }),
    ),
    grants: '"allowed":true',
    async stop() {
      service.stop()
      await redis?.stop()
    },
  }
}

/** @type {(name: string, file: string) => Promise<Running>} */
async function ratelimit(name, file) {
  const limit = `domain: bench\ndescriptors:\n  - key: account\n    rate_limit:\n      unit: hour\n      requests_per_unit: ${capacity}\n`
  const { port, pids, stop } = await startRatelimit(file, limit)
  const body = (/** @type {string} */ value) => ({
    domain: 'bench',
    descriptors: [{ entries: [{ key: 'account', value }] }],
  })
  return {
    name,
    port,
    pids,
    requests: keys.map((key) => post('/json', body(key))),
    grants: '"overallCode":"OK"',
    stop,
  }
}

/** Keeps its counters in its own memory. One node, so it never forwards a request to a peer. @type {(name: string, file: string) => Promise<Running>} */
async function gubernator(name, file) {
  const [port, grpcPort] = [await freePort(), await freePort()]
  const service = await spawned(file, {
    port,
    env: () => ({
      GUBER_GRPC_ADDRESS: `127.0.0.1:${grpcPort}`,
      GUBER_HTTP_ADDRESS: `127.0.0.1:${port}`,
      GUBER_ADVERTISE_ADDRESS: `127.0.0.1:${grpcPort}`,
      GUBER_PEER_DISCOVERY_TYPE: 'none',
      GUBER_LOG_LEVEL: 'error',
    }),
  })
  const body = (/** @type {string} */ unique_key) => ({
    requests: [{ name: 'accounts', unique_key, hits: '1', limit: String(capacity), duration: '3600000' }],
  })
  return {
    name,
    port,
    pids: [service.pid],
    requests: keys.map((key) => post('/v1/GetRateLimits', body(key))),
    grants: '"UNDER_LIMIT"',
    stop: service.stop,
  }
}

const keyed = keys.map(
  (key) => `GET / HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: ${key}\r\nAccept: application/json\r\n\r\n`,
)

/** Answers itself: `empty_gif` runs after `limit_req`, which `return` would skip. @type {(name: string, file: string) => Promise<Running>} */
async function nginx(name, file) {
  const { port, pid, stop } = await startNginx(file, { key: '$http_x_api_key', location: 'empty_gif;' })
  return { name, port, pids: [pid], requests: keyed, grants: '', stop }
}

/** @type {(name: string, file: string) => Promise<Running>} */
async function haproxy(name, file) {
  const port = await freePort()
  const service = await spawned(file, {
    port,
    args: () => ['-f', 'haproxy.cfg'],
    files: () => ({
      'haproxy.cfg': `global
  maxconn 1024
  nbthread 1
defaults
  mode http
  timeout client 60s
  timeout server 60s
  timeout connect 5s
frontend limits
  bind 127.0.0.1:${port}
  stick-table type string len 32 size 100k expire 1h store http_req_rate(1h)
  http-request track-sc0 req.hdr(x-api-key)
  http-request deny deny_status 429 if { sc_http_req_rate(0) gt 1000000000 }
  http-request return status 200 content-type text/plain string ok
`,
    }),
  })
  return { name, port, pids: [service.pid], requests: keyed, grants: '', stop: service.stop }
}

/** @type {readonly { name: string, service: import('./install.mjs').Service, start: (name: string, file: string) => Promise<Running> }[]} */
export const others = [
  { name: 'envoyproxy/ratelimit, /json', service: 'ratelimit', start: ratelimit },
  { name: 'gubernator, HTTP', service: 'gubernator', start: gubernator },
  { name: 'nginx, limit_req', service: 'nginx', start: nginx },
  { name: 'HAProxy, stick table', service: 'haproxy', start: haproxy },
]

/**
 * Starts every service that is available, and returns the reasons for the others.
 *
 * @param {boolean} mayInstall
 * @param {(text: string) => void} progress
 */
export async function startOthers(mayInstall, progress) {
  /** @type {Running[]} */
  const running = []
  /** @type {string[]} */
  const skipped = []
  for (const { name, service, start } of others) {
    progress(`Services: starting ${name}`)
    const found = await program(service, mayInstall)
    if ('file' in found) running.push(await start(name, found.file))
    else skipped.push(`${name} was not measured: ${found.missing}.`)
  }
  return { running, skipped }
}
