// @ts-check
/**
 * Memory of a gateway and of a server under load: `npm run memory`. Each load runs twice, so that one-time costs (compiled
 * code, pools) are not counted. In the second run, live memory and RSS may grow by 30 MiB at most, while the load is held and
 * after it. Exit status: 0 flat, 1 growth.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const limitBytes = 30 * 2 ** 20
const directory = mkdtempSync(join(tmpdir(), 'fluxgate-memory-'))
process.once('exit', () => rmSync(directory, { recursive: true, force: true }))

const hint = 'HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n'.repeat(100)
const upstream = createServer((socket) => {
  socket.on('error', () => {})
  socket.on('data', (data) => {
    const text = data.toString('latin1')
    if (text.includes(' /flood')) {
      const timer = setInterval(() => socket.writableNeedDrain || socket.write(hint), 1)
      socket.once('close', () => clearInterval(timer))
    } else if (text.includes(' /large'))
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n${'a'.repeat(5e6)}`)
    else if (text.startsWith('GET')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
  })
}).listen(0, '127.0.0.1')
await once(upstream, 'listening')
const address = /** @type {import('node:net').AddressInfo} */ (upstream.address())

const bands = [{ capacity: 10, window: '1h' }]
const limiter = { name: 'RateLimiter', args: { bands, keyResolver: 'header.x-api-key' } }
// One client address makes all requests here, so it may use all connections.
const gateway = await startProgram('gateway', {
  gateway: { clientShare: 1, routes: [{ id: 'all', uri: `http://127.0.0.1:${address.port}`, filters: [limiter] }] },
})
writeFileSync(join(directory, 'rules.json'), JSON.stringify({ id: 'api', rules: [{ id: 'all', bands }] }))
const server = await startProgram('serve', { rules: { path: join(directory, 'rules.json') } })

/** @typedef {{ port: number, measure: () => Promise<{ rss: number, live: number }>, stop: () => void }} Program */

/** @returns {Promise<Program>} */
async function startProgram(/** @type {string} */ command, /** @type {unknown} */ settings) {
  const config = join(directory, `${command}.json`)
  writeFileSync(config, JSON.stringify(settings))
  const preload = join(root, 'scripts', 'memory-preload.mjs')
  const program = join(root, 'dist', 'command', 'main.js')
  const args = ['--expose-gc', '--import', preload, program, command, '--port', '0', '--config', config]
  const child = spawn(process.execPath, args, { cwd: directory, stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  process.once('exit', () => child.kill('SIGKILL'))
  let output = ''
  child.stdout?.on('data', (data) => {
    output += data
  })
  while (!output.includes('Ctrl-C')) await pause(50)
  return {
    port: Number(/:(\d+)/.exec(output)?.[1]),
    async measure() {
      const answer = once(child, 'message')
      child.send('measure')
      return (await answer)[0]
    },
    stop: () => child.kill(),
  }
}

/**
 * Opens connections that send `text` and read nothing while `during` runs. Returns the memory that is used then.
 *
 * @param {Program} program
 * @param {number} count
 * @param {() => string} text
 * @param {() => Promise<unknown>} during
 */
async function hold(program, count, text, during) {
  const sockets = []
  for (let index = 0; index < count; index++) {
    const socket = connect(program.port, '127.0.0.1')
    socket.on('error', () => {})
    socket.pause()
    sockets.push(socket)
    socket.write(text())
    if (index % 100 === 99) await Promise.race([once(socket, 'connect'), pause(5_000)])
  }
  await during()
  const held = await program.measure()
  for (const socket of sockets) socket.destroy()
  await pause(1_500)
  return held
}

/** Makes 50 000 decisions, each of them an event for every stream. */
async function makeEvents() {
  const checks = Array.from({ length: 1_000 }, (_, i) => ({ clientIp: `10.0.${i % 250}.1`, path: '/a', method: 'GET' }))
  const body = JSON.stringify({ checks })
  const url = `http://127.0.0.1:${server.port}/api/ratelimit/check/batch`
  const headers = { 'Content-Type': 'application/json' }
  for (let i = 0; i < 50; i++) {
    const { status } = await fetch(url, { method: 'POST', headers, body })
    if (status !== 200) throw new Error(`The server answered a batch of checks with ${status}.`)
  }
}

let keys = 0
const head = (/** @type {string} */ line, more = '') => `${line} HTTP/1.1\r\nHost: 127.0.0.1\r\n${more}\r\n`
const get = (/** @type {string} */ path, padding = '') => head(`GET ${path}`, `X-API-Key: ${keys++}${padding}\r\n`)
const longKeys = () => Array.from({ length: 10 }, () => get('/', 'k'.repeat(15_000))).join('')
const upload = () => `${head('POST /slow', `X-API-Key: ${keys++}\r\nContent-Length: 1000\r\n`)}ab`

/** @type {[string, Program, () => Promise<any>][]} */
const loads = [
  ['long keys (4000 of 15 000 bytes)', gateway, () => hold(gateway, 400, longKeys, () => pause(4_000))],
  [
    '1xx floods (20)',
    gateway,
    () =>
      hold(
        gateway,
        20,
        () => get('/flood'),
        () => pause(4_000),
      ),
  ],
  [
    'slow readers (100)',
    gateway,
    () =>
      hold(
        gateway,
        100,
        () => get('/large'),
        () => pause(3_000),
      ),
  ],
  ['slow writers (300)', gateway, () => hold(gateway, 300, upload, () => pause(3_000))],
  [
    'idle connections (5000)',
    gateway,
    () =>
      hold(
        gateway,
        5_000,
        () => '',
        () => pause(1_000),
      ),
  ],
  ['unread event streams (300)', server, () => hold(server, 300, () => head('GET /api/events'), makeEvents)],
]

const mib = (/** @type {number} */ bytes) => (bytes / 2 ** 20).toFixed(1).padStart(8)
let status = 0
console.log(`${'load'.padEnd(34)} RSS MiB: warm, held, after    live MiB: warm, held, after`)
for (const [name, { measure }, run] of loads) {
  await run()
  const warm = await measure()
  const held = await run()
  const after = await measure()
  const isFlat = [held, after].every(({ rss, live }) => Math.max(rss - warm.rss, live - warm.live) <= limitBytes)
  if (!isFlat) status = 1
  const cells = [warm.rss, held.rss, after.rss, warm.live, held.live, after.live].map(mib).join('')
  console.log(`${name.padEnd(34)} ${cells}  ${isFlat ? 'flat' : 'grows'}`)
}
gateway.stop()
server.stop()
upstream.close()
process.exit(status)
