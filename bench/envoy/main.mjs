// @ts-check
/**
 * `npm run bench -- envoy`: measures FluxGate and envoyproxy/ratelimit behind Envoy and writes the figures of
 * docs/design/envoy.md. `--quick` takes seconds and writes nothing. Both programs must be installed:
 * `node scripts/bootstrap.mjs envoy` and `node bench/services/install.mjs`.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { envoyFile } from '../../scripts/bootstrap/envoy.mjs'
import { cpuTimeUs, startLoad } from '../http/processes.mjs'
import { connections } from '../http/rounds.mjs'
import { Broken } from '../measure.mjs'
import { withBlock } from '../results/generated-block.mjs'
import { machine } from '../results/results-file.mjs'
import { progress } from '../runs/progress.mjs'
import { program } from '../services/install.mjs'
import { timesAs, typical } from '../turns.mjs'
import { startEnvoy } from './proxy.mjs'
import { fluxGate, original } from './services.mjs'

const page = new URL('../../docs/design/envoy.md', import.meta.url)
const keys = ['account', 'tenant', 'plan', 'region']
const descriptorCounts = [1, 4]
const unlimited = 1_000_000_000
const limit = 500
const full = { rounds: 9, warmUps: 2, seconds: 3 }
const quick = { rounds: 1, warmUps: 0, seconds: 0.5 }

/** @typedef {typeof full} Size */
/** @typedef {{ file: string, envoy: string }} Programs */
/** @typedef {{ perSecond: number, perCpuSecond: number, cpuUs: number, p50Ms: number, p99Ms: number }} Turn */

export async function envoyFigures(/** @type {readonly string[]} */ args) {
  const { values } = parseArgs({ args: [...args], options: { quick: { type: 'boolean', default: false } } })
  const size = values.quick ? quick : full
  const programs = await installed()
  const load = await startLoad()
  try {
    const costs = []
    for (const count of descriptorCounts) costs.push(...(await costRows(programs, load, count, size)))
    const admissions = []
    for (const isRedisUp of [true, false]) admissions.push(await admissionRow(programs, load, isRedisUp))
    progress('')
    const text = [
      table(
        [
          'descriptors',
          'service',
          'requests/s',
          'p50 ms',
          'p99 ms',
          'CPU µs',
          'decisions per CPU second, relative to envoyproxy/ratelimit',
        ],
        costs,
      ),
      table([`limit of ${limit}, one key`, 'FluxGate admits', 'envoyproxy/ratelimit admits'], admissions),
    ].join('\n\n')
    process.stdout.write(`${text}\n`)
    if (values.quick) return
    const date = new Date().toISOString().slice(0, 10)
    const content = `Measured on ${date}: ${machine()}.\n\n${text}`
    writeFileSync(page, withBlock(readFileSync(page, 'utf8'), 'figures', content))
  } finally {
    load.stop()
  }
}

/** @returns {Promise<Programs>} */
async function installed() {
  const envoy = envoyFile()
  if (envoy === undefined) throw new Broken('Envoy is not installed; run node scripts/bootstrap.mjs envoy.')
  const found = await program('ratelimit', false)
  if (!('file' in found)) throw new Broken(`envoyproxy/ratelimit is ${found.missing}.`)
  return { file: found.file, envoy }
}

/** @type {(programs: Programs, keys: readonly string[], capacity: number) => Promise<Contender[]>} */
async function startBoth({ file, envoy }, names, capacity) {
  const services = [await fluxGate(names, capacity), await original(file, names, capacity)]
  return Promise.all(services.map(async (it) => ({ ...it, envoy: await startEnvoy(envoy, it.grpcPort, names) })))
}

/** @typedef {import('./services.mjs').Service & { envoy: { port: number, stop(): void } }} Contender */

async function stopAll(/** @type {readonly Contender[]} */ contenders) {
  for (const { envoy, stop } of contenders) {
    envoy.stop()
    await stop()
  }
}

/** @type {(programs: Programs, load: Awaited<ReturnType<typeof startLoad>>, count: number, size: Size) => Promise<string[][]>} */
async function costRows(programs, load, count, { rounds, warmUps, seconds }) {
  const names = keys.slice(0, count)
  const contenders = await startBoth(programs, names, unlimited)
  const rows = contenders.map(({ name }) => ({ name, turns: /** @type {Turn[]} */ ([]) }))
  const requests = Array.from({ length: 1_000 }, (_, i) => request(names, i))
  try {
    for (let round = -warmUps; round < rounds; round++) {
      progress(`Envoy, ${count} descriptors: ${round < 0 ? 'warming up' : `round ${round + 1} of ${rounds}`}`)
      for (const turn of contenders.keys()) {
        const index = (turn + round + warmUps) % contenders.length
        const { envoy, pids, name } = /** @type {Contender} */ (contenders[index])
        const used = () => pids.reduce((sum, pid) => sum + cpuTimeUs(pid), 0)
        const before = used()
        const outcome = await load.ask({ port: envoy.port, connections, seconds, requests })
        const { answered, others, perSecond, p50Ms, p99Ms } = outcome
        if (others > 0) throw new Broken(`Envoy in front of ${name} rejected ${others} requests.`)
        const cpuUs = Math.max(used() - before, 10_000) / answered
        if (round >= 0) rows[index]?.turns.push({ perSecond, perCpuSecond: 1e6 / cpuUs, cpuUs, p50Ms, p99Ms })
      }
    }
  } finally {
    await stopAll(contenders)
  }
  const other = /** @type {string} */ (rows[1]?.name)
  return rows.map((row) => [
    String(count),
    row.name,
    Math.round(typical(row, 'perSecond')).toLocaleString('en'),
    typical(row, 'p50Ms').toFixed(2),
    typical(row, 'p99Ms').toFixed(2),
    typical(row, 'cpuUs').toFixed(1),
    timesAs(rows, 'perCpuSecond', row.name, other).toFixed(2),
  ])
}

/** Returns how many requests Envoy forwards in one second of load on one key. @type {(programs: Programs, load: Awaited<ReturnType<typeof startLoad>>, isRedisUp: boolean) => Promise<string[]>} */
async function admissionRow(programs, load, isRedisUp) {
  const names = keys.slice(0, 1)
  const contenders = await startBoth(programs, names, limit)
  try {
    const cells = [isRedisUp ? 'Redis is running' : 'Redis is stopped before the first request']
    for (const { envoy, name, stopRedis } of contenders) {
      progress(`Envoy, limit of ${limit}: ${name}`)
      if (!isRedisUp) await stopRedis()
      const order = { port: envoy.port, connections, seconds: 1, requests: [request(names, 0)] }
      const { answered, others } = await load.ask(order)
      cells.push(`${answered.toLocaleString('en')} of ${(answered + others).toLocaleString('en')}`)
    }
    return cells
  } finally {
    await stopAll(contenders)
  }
}

/** @type {(names: readonly string[], i: number) => string} */
function request(names, i) {
  const headers = names.map((name, at) => `x-${name}: ${name}-${i % 10 ** (3 - at)}\r\n`).join('')
  return `GET /items HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`
}

/** @type {(head: readonly string[], rows: readonly (readonly string[])[]) => string} */
const table = (head, rows) =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
