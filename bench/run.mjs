// @ts-check
/**
 * npm run bench [-- --quick] [--runs <n>] [--busy <n>] [<section> ...]
 * npm run bench -- compare --other <checkout> [--pairs <n>] [--only <area>]
 *
 * Exit status: 0 regardless of the figures, 1 if a contender does not work as expected, 2 invalid arguments.
 */
import { parseArgs } from 'node:util'
import { compare } from './compare/main.mjs'
import { Broken } from './measure.mjs'
import { sectionText, verdicts, verdictText } from './report.mjs'
import { writeResults } from './results-file.mjs'
import { allAlgorithms } from './sections/algorithms.mjs'
import { bulk } from './sections/bulk.mjs'
import { faults } from './sections/faults.mjs'
import { overFrameworks } from './sections/frameworks.mjs'
import { overGateways } from './sections/gateway.mjs'
import { lock } from './sections/lock.mjs'
import { matching } from './sections/matching.mjs'
import { memory } from './sections/memory.mjs'
import { overRedis } from './sections/redis.mjs'
import { overRuleSets } from './sections/rule-sets.mjs'
import { byRules } from './sections/rules.mjs'
import { overSearchIndex } from './sections/search-index.mjs'
import { overServers } from './sections/server.mjs'
import { singleBand } from './sections/single-band.mjs'

/** In order of execution: sections that use a single algorithm run before those that use all of them. */
const sections = {
  'single-band': singleBand,
  rules: byRules,
  matching,
  memory,
  algorithms: allAlgorithms,
  redis: overRedis,
  bulk,
  lock,
  'search-index': overSearchIndex,
  frameworks: overFrameworks,
  gateway: overGateways,
  server: overServers,
  'rule-sets': overRuleSets,
  faults,
}

const usage = `Usage: npm run bench -- [--quick] [--runs <n>] [--busy <n>] [<section> ...]
       npm run bench -- compare --other <checkout>   compares this checkout with another one
  --quick    takes seconds; the figures are rough, and bench/RESULTS.md is not changed
  --runs     section faults: number of runs of each kind of cold start
  --busy     section faults: number of busy loops that run during cold starts
  <section>  ${Object.keys(sections).join(', ')}; default: all
`

/** @type {Omit<import('./measure.mjs').Effort, 'progress'>} */
const full = {
  keys: 100_000,
  operations: 100_000,
  warmUps: 6,
  rounds: 15,
  memoryKeys: 1_000_000,
  redis: { keys: 10_000, seconds: 0.5, warmUps: 2, rounds: 11, watchSeconds: 4, memoryKeys: 100_000 },
  http: { seconds: 0.7, warmUps: 2, rounds: 15 },
  bulkRecords: 1_000_000,
  bulkRounds: 3,
  indexRecords: 1_000_000,
  indexQueries: 500,
  ruleSets: { rules: 12_000, manyRules: 100_000 },
  faults: { runs: 10, processes: 8, busyLoops: 0, cuts: 10, cutSeconds: 3 },
}
/** @type {typeof full} */
const quick = {
  keys: 5_000,
  operations: 5_000,
  warmUps: 1,
  rounds: 2,
  memoryKeys: 20_000,
  redis: { keys: 500, seconds: 0.05, warmUps: 0, rounds: 2, watchSeconds: 0.2, memoryKeys: 2_000 },
  http: { seconds: 0.05, warmUps: 0, rounds: 2 },
  bulkRecords: 10_000,
  bulkRounds: 1,
  indexRecords: 3_000,
  indexQueries: 20,
  ruleSets: { rules: 50, manyRules: 200 },
  faults: { runs: 1, processes: 2, busyLoops: 0, cuts: 1, cutSeconds: 0.4 },
}

const terminal = process.stderr.isTTY
const progress = (/** @type {string} */ text) => {
  if (terminal) process.stderr.write(`\r\u001b[K${text}`)
}

if (process.argv[2] === 'compare') {
  await compare(process.argv.slice(3)).catch(giveUp)
  process.exit(0)
}

const options = readOptions()
/** @type {import('./report.mjs').Findings[]} */
const findings = []
for (const [name, section] of Object.entries(sections)) {
  if (!options.names.includes(name)) continue
  const effort = options.quick ? quick : full
  const found = await section({ ...effort, faults: { ...effort.faults, ...options.faults }, progress }).catch(giveUp)
  progress('')
  findings.push(found)
  process.stdout.write(`${sectionText(found)}\n`)
}
process.stdout.write(verdictText(findings.flatMap(verdicts)))
if (!options.quick) {
  writeResults(findings)
  process.stdout.write('\nWritten to bench/RESULTS.md\n')
}

function readOptions() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        quick: { type: 'boolean', default: false },
        runs: { type: 'string' },
        busy: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    })
    const unknown = positionals.find((name) => !Object.hasOwn(sections, name))
    if (unknown !== undefined) throw new Error(`Unknown section "${unknown}". Use one of the sections below.`)
    if (values.help) {
      process.stdout.write(usage)
      process.exit(0)
    }
    const faults = {
      ...(values.runs !== undefined && { runs: wholeNumber('--runs', values.runs, 1) }),
      ...(values.busy !== undefined && { busyLoops: wholeNumber('--busy', values.busy, 0) }),
    }
    return { quick: values.quick, faults, names: positionals.length === 0 ? Object.keys(sections) : positionals }
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n${usage}`)
    process.exit(2)
  }
}

function wholeNumber(/** @type {string} */ name, /** @type {string} */ text, /** @type {number} */ least) {
  const value = Number(text)
  if (Number.isInteger(value) && value >= least) return value
  throw new Error(`${name} must be an integer of at least ${least}; received "${text}".`)
}

/** @returns {never} */
function giveUp(/** @type {unknown} */ error) {
  progress('')
  if (!(error instanceof Broken)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exit(1)
}
