// @ts-check
/**
 * `npm run bench -- growth`: measures how costs grow and writes docs/design/growth.md, its charts, bench/costs.json and the
 * tables of docs/guide/capacity.md. `--quick` takes seconds and writes nothing.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { writeCapacityPage } from '../capacity/page.mjs'
import { median } from '../measure.mjs'
import { machine } from '../results/results-file.mjs'
import { progress } from '../runs/progress.mjs'
import { bands } from './bands.mjs'
import { cluster } from './cluster.mjs'
import { connections } from './connections.mjs'
import { memoryKeys } from './memory-keys.mjs'
import { chartOf, pageText } from './page.mjs'
import { processes } from './processes.mjs'
import { redisKeys } from './redis-keys.mjs'
import { rules } from './rules.mjs'

const docs = new URL('../../docs/design/', import.meta.url)
const costsFile = new URL('../costs.json', import.meta.url)

/** @typedef {Omit<import('./dimension.mjs').GrowthEffort, 'progress'>} Sizes */

/** @type {Sizes} */
const full = {
  memoryKeys: [1e3, 1e4, 1e5, 1e6, 1e7],
  redisKeys: [1e3, 1e4, 1e5, 1e6, 1e7],
  rules: [10, 100, 1e3, 1e4, 1e5],
  bands: [1, 2, 3, 4, 6, 8],
  processes: [1, 2, 4, 8],
  primaries: [1, 2, 3],
  connections: [1, 10, 100, 1000, 5000],
  warmUps: 2,
  rounds: 7,
  seconds: 0.6,
  operations: 500_000,
}
/** @type {Sizes} */
const quick = {
  memoryKeys: [100, 1000],
  redisKeys: [100, 1000],
  rules: [10, 100],
  bands: [1, 3],
  processes: [1, 2],
  primaries: [1, 2],
  connections: [1, 20],
  warmUps: 0,
  rounds: 2,
  seconds: 0.1,
  operations: 2_000,
}

export async function growth(/** @type {readonly string[]} */ args) {
  const { values } = parseArgs({ args: [...args], options: { quick: { type: 'boolean', default: false } } })
  const effort = { ...(values.quick ? quick : full), progress }
  const startedAt = performance.now()
  const ofRedisKeys = await redisKeys(effort)
  const ofBands = await bands(effort)
  const ofProcesses = await processes(effort)
  const ofConnections = await connections(effort)
  const dimensions = [
    await memoryKeys(effort),
    ofRedisKeys,
    await rules(effort),
    ofBands,
    ofProcesses,
    await cluster(effort),
    ofConnections,
  ]
  progress('')
  const minutes = ((performance.now() - startedAt) / 60_000).toFixed(1)
  const date = new Date().toISOString().slice(0, 10)
  const measured = `Measured on ${date} in ${minutes} minutes: ${machine()}.`
  const page = pageText(dimensions, measured)
  process.stdout.write(page)
  if (values.quick) return
  mkdirSync(new URL('charts/', docs), { recursive: true })
  for (const dimension of dimensions) writeFileSync(new URL(`charts/${dimension.id}.svg`, docs), chartOf(dimension))
  writeFileSync(new URL('growth.md', docs), page)
  const costs = costsOf(ofBands, ofProcesses, ofConnections, ofRedisKeys.bytesPerKey)
  writeFileSync(costsFile, `${JSON.stringify({ date, machine: machine(), ...costs }, undefined, 2)}\n`)
  await writeCapacityPage()
  process.stdout.write(
    '\nWritten to docs/design/growth.md, docs/design/charts, docs/guide/capacity.md and bench/costs.json\n',
  )
}

/**
 * The costs that capacity planning uses: EXACT with one and three bands, LEASED with one process on its own core, and with the
 * largest number of processes that compete for leases in Redis.
 *
 * @param {import('./dimension.mjs').Dimension} ofBands
 * @param {import('./dimension.mjs').Dimension} ofProcesses
 * @param {import('./dimension.mjs').Dimension} ofConnections
 * @param {number} bytesPerKey
 * @returns {Pick<import('../capacity/model.mjs').Costs, 'exact' | 'exactThreeBands' | 'leased' | 'gatewayUs' | 'bytesPerKey'>}
 */
function costsOf(ofBands, ofProcesses, ofConnections, bytesPerKey) {
  /** @type {(from: import('./dimension.mjs').Dimension, series: string, point: number) => number} */
  const cost = (from, series, point) => {
    const costs = from.series.find(({ name }) => name === series)?.costs[from.points.indexOf(point)]
    return Number(median(costs ?? []).toPrecision(4))
  }
  const mostProcesses = Math.max(...ofProcesses.points)
  return {
    exact: { processUs: cost(ofBands, 'process', 1), redisUs: cost(ofBands, 'Redis', 1) },
    exactThreeBands: { processUs: cost(ofBands, 'process', 3), redisUs: cost(ofBands, 'Redis', 3) },
    leased: {
      processUs: cost(ofProcesses, 'LEASED, processes', 1),
      redisUs: cost(ofProcesses, 'LEASED, Redis', mostProcesses),
    },
    gatewayUs: cost(ofConnections, 'gateway', 100),
    bytesPerKey: Math.round(bytesPerKey),
  }
}
