// @ts-check
/**
 * Memory of a gateway under load: `npm run memory`. Each load runs twice; the second run must add at most 30 MiB of live
 * memory. Exit status: 0 flat, 1 growth.
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
const limitMiB = 30
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

const limiter = {
  name: 'RateLimiter',
  args: { bands: [{ capacity: 10, window: '1h' }], keyResolver: 'header.x-api-key' },
}
const routes = [{ id: 'all', uri: `http://127.0.0.1:${address.port}`, filters: [limiter] }]
const config = join(directory, 'fluxgate.json')
writeFileSync(config, JSON.stringify({ gateway: { routes } }))
const preload = join(root, 'test', 'batteries', 'memory-preload.mjs')
const program = join(root, 'dist', 'command', 'main.js')
const args = ['--expose-gc', '--import', preload, program, 'gateway', '--port', '0', '--config', config]
const child = spawn(process.execPath, args, { cwd: directory, stdio: ['ignore', 'pipe', 'ignore', 'ipc'] })
process.once('exit', () => child.kill('SIGKILL'))
let output = ''
child.stdout?.on('data', (data) => {
  output += data
})
while (!output.includes('Ctrl-C')) await pause(50)
const port = Number(/:(\d+)/.exec(output)?.[1])
let keys = 0

const measure = async () => {
  const answer = once(child, 'message')
  child.send('measure')
  return (await answer)[0]
}

/** Connections that send `text` and read nothing, for a while. */
async function hold(
  /** @type {number} */ count,
  /** @type {(index: number) => string} */ text,
  /** @type {number} */ ms,
) {
  const sockets = []
  for (let index = 0; index < count; index++) {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    socket.pause()
    sockets.push(socket)
    socket.write(text(index))
    if (index % 100 === 99) await Promise.race([once(socket, 'connect'), pause(5_000)])
  }
  await pause(ms)
  const held = await measure()
  for (const socket of sockets) socket.destroy()
  await pause(1_500)
  return held
}

const get = (/** @type {string} */ path, more = '') =>
  `GET ${path} HTTP/1.1\r\nHost: a\r\nX-API-Key: ${keys++}${more}\r\n\r\n`
/** @type {Record<string, () => Promise<any>>} */
const loads = {
  'long keys (4000 of 15 000 bytes)': () =>
    hold(400, () => Array.from({ length: 10 }, () => get('/', 'k'.repeat(15_000))).join(''), 4_000),
  '1xx floods (20)': () => hold(20, () => get('/flood'), 4_000),
  'slow readers (100)': () => hold(100, () => get('/large'), 3_000),
  'slow writers (300)': () =>
    hold(300, () => `POST /slow HTTP/1.1\r\nHost: a\r\nX-API-Key: ${keys++}\r\nContent-Length: 1000\r\n\r\nab`, 3_000),
  'idle connections (5000)': () => hold(5_000, () => '', 1_000),
}

const mib = (/** @type {number} */ bytes) => (bytes / 2 ** 20).toFixed(1).padStart(8)
let status = 0
console.log(`${'load'.padEnd(34)} RSS MiB: warm, held, after    live MiB: warm, held, after`)
for (const [name, run] of Object.entries(loads)) {
  await run()
  const warm = await measure()
  const held = await run()
  const after = await measure()
  const isFlat = after.live - warm.live <= limitMiB * 2 ** 20
  if (!isFlat) status = 1
  const cells = [warm.rss, held.rss, after.rss, warm.live, held.live, after.live].map(mib).join('')
  console.log(`${name.padEnd(34)} ${cells}  ${isFlat ? 'flat' : 'grows'}`)
}
child.kill()
upstream.close()
process.exit(status)
