// @ts-check
/** The generated part of docs/guide/capacity.md. `node bench/capacity/page.mjs` writes it from bench/costs.json. */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { withBlock } from '../results/generated-block.mjs'
import { table } from '../results/report.mjs'
import { assumptions, plan } from './model.mjs'
import { simulateRegions, splitQuota } from './regions.mjs'
import { simulate } from './simulate.mjs'

const page = new URL('../../docs/guide/capacity.md', import.meta.url)
const costsFile = new URL('../costs.json', import.meta.url)

/** Names of generated blocks; each is enclosed in comments with its name. */
const blocks = { costs: costsText, plans: plansText, regions: regionsText }

/** @returns {import('./model.mjs').Costs} */
export const readCosts = () => JSON.parse(readFileSync(costsFile, 'utf8'))

export async function writeCapacityPage() {
  writeFileSync(page, await withTables(readFileSync(page, 'utf8'), readCosts()))
}

/** Replaces the generated blocks of the page. */
export async function withTables(/** @type {string} */ text, /** @type {import('./model.mjs').Costs} */ costs) {
  let result = text
  for (const [name, textOf] of Object.entries(blocks)) result = withBlock(result, name, await textOf(costs))
  return result
}

function costsText(
  /** @type {import('./model.mjs').Costs} */ { date, machine, exact, exactThreeBands, leased, gatewayUs, bytesPerKey },
) {
  const row = (
    /** @type {string} */ name,
    /** @type {import('./model.mjs').DecisionCost} */ { processUs, redisUs },
  ) => [name, microseconds(processUs), microseconds(redisUs)]
  return `Measured on ${date} (${machine}):

${table(
  ['', 'process, CPU µs', 'Redis, CPU µs'],
  [
    row('EXACT, one band', exact),
    row('EXACT, three bands', exactThreeBands),
    row('LEASED, busy keys', leased),
    ['gateway, per request, in addition', microseconds(gatewayUs), ''],
  ],
)}

A key with one band takes ${bytesPerKey} bytes of the \`used_memory\` of Redis: name, value, expiry and its share of the hash tables. \`MEMORY USAGE\`, which counts only the name and the value, reports 120 bytes. Both are for identities
of 14 characters, such as \`user:100000001\`; up to 12 characters take 16 to 20 bytes less.`
}

/** Decisions per lease in the simulation. Costs are measured, so it affects only the size of calls. */
const leaseSize = 100

/** @type {(costs: import('./model.mjs').Costs) => { name: string, demand: import('./model.mjs').Demand }[]} */
export const scenarios = ({ exact, exactThreeBands, leased }) => [
  { name: 'EXACT, one band', demand: { perSecond: 10_000, cost: exact } },
  { name: 'EXACT, one band', demand: { perSecond: 100_000, cost: exact } },
  { name: 'EXACT, one band', demand: { perSecond: 1_000_000, cost: exact } },
  { name: 'EXACT, three bands', demand: { perSecond: 1_000_000, cost: exactThreeBands } },
  { name: 'LEASED, busy keys', demand: { perSecond: 1_000_000, cost: leased, leaseSize } },
  { name: 'LEASED, busy keys', demand: { perSecond: 10_000_000, cost: leased, leaseSize } },
]

function plansText(/** @type {import('./model.mjs').Costs} */ costs) {
  const rows = scenarios(costs).map(({ name, demand }) => {
    const planned = plan(demand, assumptions)
    const simulated = simulate(demand, assumptions, planned)
    const percent = (/** @type {number} */ value) => `${(value * 100).toFixed(0)} %`
    return [
      name,
      demand.perSecond.toLocaleString('en'),
      `${planned.processes}`,
      `${planned.primaries}`,
      `${percent(planned.redisUtilisation)} / ${percent(simulated.redisUtilisation)}`,
      `${milliseconds(planned.meanUs)} / ${milliseconds(simulated.meanUs)}`,
      milliseconds(simulated.p99Us),
    ]
  })
  const head = [
    '',
    'decisions/s',
    'processes',
    'primaries',
    'Redis CPU, model / simulation',
    'mean ms, model / simulation',
    'p99 ms, simulation',
  ]
  return table(head, rows)
}

/** @type {readonly { name: string, regions: readonly import('./regions.mjs').Region[] }[]} */
const deployments = [
  { name: 'demand as planned', regions: regionsOf([0.5, 0.3, 0.2], [450, 270, 180]) },
  { name: 'one region has twice its planned demand', regions: regionsOf([0.5, 0.3, 0.2], [450, 540, 180]) },
  { name: 'demand above the limit everywhere', regions: regionsOf([0.5, 0.3, 0.2], [800, 600, 400]) },
  { name: 'one region without demand', regions: regionsOf([0.5, 0.3, 0.2], [0, 600, 400]) },
]

/** @returns {import('./regions.mjs').Region[]} */
function regionsOf(/** @type {readonly number[]} */ shares, /** @type {readonly number[]} */ demands) {
  return shares.map((share, i) => ({ name: `region ${i + 1}`, share, demand: demands[i] ?? 0 }))
}

const globalLimit = 1000

async function regionsText() {
  const rows = []
  for (const { name, regions } of deployments) {
    const model = splitQuota(globalLimit, regions)
    const simulated = await simulateRegions(globalLimit, regions)
    rows.push([
      name,
      regions.map(({ demand }) => demand).join(' + '),
      `${model.perSecond.toFixed(0)} / ${simulated.perSecond.toFixed(0)}`,
      `${model.unused.toFixed(0)}`,
      `${simulated.most}`,
    ])
  }
  const head = [
    '',
    'requests/s',
    'allowed/s, model / simulation',
    'unused while another region rejects',
    'most in any second',
  ]
  return table(head, rows)
}

const microseconds = (/** @type {number} */ value) => value.toFixed(value < 1 ? 3 : value < 10 ? 2 : 1)
const milliseconds = (/** @type {number} */ us) => (us / 1000).toFixed(us < 100 ? 3 : 2)

if (process.argv[1] === fileURLToPath(import.meta.url)) await writeCapacityPage()
