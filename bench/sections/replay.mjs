// @ts-check
/** Access logs replayed by `fluxgate simulate --from`, each in a new process, from start to exit. */
import { spawnSync } from 'node:child_process'
import { createWriteStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { Broken } from '../measure.mjs'
import { figure, spreadFigure } from '../results/report.mjs'

export const title = 'Replay'

const command = fileURLToPath(new URL('../../dist/command/main.js', import.meta.url))
/** Prints the CPU time of the whole process. */
const preload = `data:text/javascript,${encodeURIComponent(
  "process.on('exit', () => { const { user, system } = process.cpuUsage(); console.error('cpu', user + system) })",
)}`

const rules = `
ruleSets:
  - id: api
    rules:
      - { id: per-address, bands: [{ capacity: 100, window: 1m }] }
      - { id: login, path: /login, method: POST, bands: [{ capacity: 5, window: 1m }] }
`

const paths = ['/', '/api/items', '/api/items/42?x=1', '/login', '/api/users/7', '/static/app.js', '/api/orders?page=3']
const browser = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36'

/** 300 requests per second from 10,000 addresses. */
function request(/** @type {number} */ i) {
  const time = new Date(Date.UTC(2026, 0, 31, 12) + Math.floor(i / 0.3))
  const client = (i * 7_919) % 10_000
  const path = paths[(i * 31) % paths.length] ?? '/'
  const address = `203.0.${Math.floor(client / 250)}.${client % 250}`
  return { time, address, path, method: path === '/login' ? 'POST' : 'GET' }
}

const clfTime = (/** @type {Date} */ time) =>
  `${time.toISOString().slice(8, 10)}/Jan/2026:${time.toISOString().slice(11, 19)} +0000`

const common = (/** @type {number} */ i) => {
  const { time, address, path, method } = request(i)
  return `${address} - - [${clfTime(time)}] "${method} ${path} HTTP/1.1" 200 ${i % 5_000}`
}

/** @type {Readonly<Record<string, (i: number) => string>>} */
const formats = {
  Common: common,
  Combined: (i) => `${common(i)} "https://example.com/start" "${browser}"`,
  'JSON lines, fields of nginx': (i) => {
    const { time, address, path, method } = request(i)
    const fields = { time_iso8601: time.toISOString(), remote_addr: address, request_method: method, uri: path }
    return JSON.stringify({ ...fields, status: 200, body_bytes_sent: i % 5_000, request_time: '0.042' })
  },
  'access log of the gateway': (i) => {
    const { time, address, path, method } = request(i)
    const [plain] = path.split('?')
    const entry = { time: time.toISOString(), method, path: plain, status: 200, durationMs: 12.5, bytes: i % 5_000 }
    const rest = { route: 'api', decision: 'allowed', clientIp: address, traceId: null, aborted: false }
    return JSON.stringify({ ...entry, ...rest })
  },
}

/** @type {import('../results/report.mjs').Section} */
export async function replay({ replayLines, progress }) {
  const directory = mkdtempSync(join(tmpdir(), 'fluxgate-replay-'))
  try {
    const rulesFile = join(directory, 'rules.yaml')
    writeFileSync(rulesFile, rules)
    const rows = []
    for (const [name, line] of Object.entries(formats)) {
      progress(`${title}: ${name}`)
      const log = join(directory, 'access.log')
      await pipeline(Readable.from(text(line, replayLines)), createWriteStream(log))
      rows.push({ name, ...measure(log, rulesFile, replayLines) })
    }
    return {
      title,
      note: `${replayLines.toLocaleString('en')} lines each, against two rules, measured from start to exit of \`fluxgate simulate --from\`. A core replays this many lines per second of CPU time.`,
      tables: [],
      figures: [
        {
          title: 'Access logs',
          head: ['format', 'lines/s and core', 'seconds'],
          lines: rows.map(({ name, perCore, seconds }) => [name, figure(perCore), spreadFigure(seconds)]),
        },
      ],
      ratios: rows.map(({ name, perCore }) => ({
        what: `lines/s and core, ${name}`,
        measured: perCore,
        atLeast: 100_000,
      })),
    }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

function* text(/** @type {(i: number) => string} */ line, /** @type {number} */ lines) {
  const atOnce = 1_000
  for (let from = 0; from < lines; from += atOnce) {
    let block = ''
    for (let i = from; i < Math.min(lines, from + atOnce); i++) block += `${line(i)}\n`
    yield block
  }
}

/** @type {(log: string, rulesFile: string, lines: number) => { perCore: number, seconds: number }} */
function measure(log, rulesFile, lines) {
  const startedAt = performance.now()
  const args = ['--import', preload, command, 'simulate', '--from', log, '--rules', rulesFile, '--json']
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', maxBuffer: 2 ** 26 })
  const seconds = (performance.now() - startedAt) / 1_000
  if (status !== 0 || JSON.parse(stdout).total.offered !== lines)
    throw new Broken(`${title}: the log was not replayed completely.\n${stderr}`)
  const cpuSeconds = Number(/cpu (\d+)/.exec(stderr)?.[1]) / 1e6
  return { perCore: lines / cpuSeconds, seconds }
}
