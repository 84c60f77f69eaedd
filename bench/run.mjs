// @ts-check
/**
 * npm run bench [-- --quick] [--runs <n>] [<section> ...]
 * npm run bench -- growth [--quick]
 * npm run bench -- console [--quick]
 * npm run bench -- envoy [--quick]
 * npm run bench -- compare --other <checkout> [--pairs <n>] [--only <area>]
 *
 * Exit status: 0 regardless of the figures, 1 if a section did not work as expected, 2 invalid arguments. A section that fails
 * does not prevent the others, and the results of a section are written as soon as it is complete.
 */
import { parseArgs } from 'node:util'
import { compare } from './compare/main.mjs'
import { consoleFigures } from './console/main.mjs'
import { envoyFigures } from './envoy/main.mjs'
import { growth } from './growth/main.mjs'
import { Broken } from './measure.mjs'
import { writeReadme } from './results/readme.mjs'
import { sectionText, verdicts, verdictText } from './results/report.mjs'
import { writeResults } from './results/results-file.mjs'
import { full, quick } from './runs/effort.mjs'
import { progress } from './runs/progress.mjs'
import { repeated } from './runs/runs.mjs'
import { sections } from './sections/index.mjs'

const usage = `Usage: npm run bench -- [--quick] [--runs <n>] [--starts <n>] [--busy <n>] [<section> ...]
       npm run bench -- growth                       cost per decision as keys, rules and processes grow
       npm run bench -- console                      the web console in Chromium
       npm run bench -- envoy                        the rate limit service, compared with envoyproxy/ratelimit behind Envoy
       npm run bench -- compare --other <checkout>   compares this checkout with another one
  --quick    takes seconds; the figures are rough, and bench/RESULTS.md is not changed
  --runs     number of runs of each section, each in a new process; default 5
  --starts   section faults: number of cold starts of each kind in a run
  --busy     section faults: number of busy loops that run during cold starts
  <section>  ${Object.keys(sections).join(', ')}; default: all
`

const defaultRuns = 5

const commands = { compare, growth, console: consoleFigures, envoy: envoyFigures }
const command = Object.entries(commands).find(([name]) => name === process.argv[2])?.[1]
if (command !== undefined) {
  try {
    await command(process.argv.slice(3))
    process.exit(0)
  } catch (error) {
    progress('')
    if (!(error instanceof Broken)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exit(1)
  }
}

const options = readOptions()
const startedAt = performance.now()
/** @type {string[][]} */
const lines = []
for (const name of Object.keys(sections)) {
  if (!options.names.includes(name)) continue
  try {
    const results = await repeated(name, options.runs, options.effort, progress)
    progress('')
    lines.push(...verdicts(results))
    process.stdout.write(`${sectionText(results)}\n`)
    if (!options.quick) writeResults([results])
  } catch (error) {
    progress('')
    if (!(error instanceof Broken)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  }
}
process.stdout.write(verdictText(lines))
if (!options.quick) writeReadme()
const minutes = ((performance.now() - startedAt) / 60_000).toFixed(1)
process.stdout.write(`\n${minutes} minutes${options.quick ? '' : '; written to bench/RESULTS.md and README.md'}\n`)

function readOptions() {
  try {
    const text = /** @type {const} */ ({ type: 'string' })
    const flag = /** @type {const} */ ({ type: 'boolean', default: false })
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: { quick: flag, runs: text, starts: text, busy: text, help: flag },
    })
    const unknown = positionals.find((name) => !Object.hasOwn(sections, name))
    if (unknown !== undefined) throw new Error(`Unknown section "${unknown}". Use one of the sections below.`)
    if (values.help) {
      process.stdout.write(usage)
      process.exit(0)
    }
    const effort = values.quick ? quick : full
    const faults = {
      ...effort.faults,
      ...(values.starts !== undefined && { runs: wholeNumber('--starts', values.starts, 1) }),
      ...(values.busy !== undefined && { busyLoops: wholeNumber('--busy', values.busy, 0) }),
    }
    const runs = values.runs === undefined ? (values.quick ? 1 : defaultRuns) : wholeNumber('--runs', values.runs, 1)
    const names = positionals.length === 0 ? Object.keys(sections) : positionals
    return { quick: values.quick, effort: { ...effort, faults }, runs, names }
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
