// @ts-check
/**
 * npm run bench [-- --quick] [-- --only <section>] [-- --write]
 *
 * Exits with 0 whatever the figures say, and with 1 if a contender does not do its work.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, totalmem } from 'node:os'
import { parseArgs } from 'node:util'
import { descriptions } from './contenders.mjs'
import { Broken } from './measure.mjs'
import { sectionText, verdictText } from './report.mjs'
import { allAlgorithms } from './sections/algorithms.mjs'
import { matching } from './sections/matching.mjs'
import { memory } from './sections/memory.mjs'
import { byRules } from './sections/rules.mjs'
import { singleBand } from './sections/single-band.mjs'

/** In this order: what asks one algorithm only comes before what asks all of them. */
const sections = { 'single-band': singleBand, rules: byRules, matching, memory, algorithms: allAlgorithms }

const usage = `Usage: npm run bench -- [--quick] [--only <section>] [--write]
  --quick    a few seconds, for a first look; the figures are rough
  --only     one section: ${Object.keys(sections).join(', ')}
  --write    write bench/RESULTS.md; a whole run that is not quick does so anyway
`

const full = { keys: 100_000, operations: 100_000, warmUps: 6, rounds: 15, memoryKeys: 1_000_000 }
const quick = { keys: 10_000, operations: 20_000, warmUps: 1, rounds: 3, memoryKeys: 20_000 }

const options = readOptions()
const terminal = process.stderr.isTTY
const progress = (/** @type {string} */ text) => {
  if (terminal) process.stderr.write(`\r\u001b[K${text}`)
}

/** @type {import('./report.mjs').Findings[]} */
const findings = []
for (const [name, section] of Object.entries(sections)) {
  if (options.only !== undefined && options.only !== name) continue
  const found = await section({ ...(options.quick ? quick : full), progress }).catch(giveUp)
  progress('')
  findings.push(found)
  process.stdout.write(`${sectionText(found)}\n`)
}
process.stdout.write(verdictText(findings))
if (options.write) {
  writeFileSync(new URL('RESULTS.md', import.meta.url), results())
  process.stdout.write('\nWritten to bench/RESULTS.md\n')
}

function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        quick: { type: 'boolean' },
        only: { type: 'string' },
        write: { type: 'boolean' },
        help: { type: 'boolean' },
      },
    })
    if (values.only !== undefined && !Object.hasOwn(sections, values.only))
      throw new Error(`There is no section "${values.only}".`)
    if (values.help) {
      process.stdout.write(usage)
      process.exit(0)
    }
    return { ...values, write: values.write ?? (!values.quick && values.only === undefined) }
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n${usage}`)
    process.exit(2)
  }
}

/** @returns {never} */
function giveUp(/** @type {unknown} */ error) {
  progress('')
  if (!(error instanceof Broken)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exit(1)
}

function results() {
  const args = process.argv.slice(2)
  const command = `npm run bench${args.length === 0 ? '' : ` -- ${args.join(' ')}`}`
  const memoryGiB = (totalmem() / 2 ** 30).toFixed(1)
  return `# Speed, side by side

Written by \`${command}\` on ${new Date().toISOString().slice(0, 10)}; do not edit.

- Machine: ${cpus()[0]?.model.trim()}, ${availableParallelism()} cores, ${memoryGiB} GiB, ${process.platform} ${process.arch}
- Node.js ${process.version}, V8 ${process.versions.v8}
- FluxGate ${version('../package.json')}, rate-limiter-flexible ${version('../node_modules/rate-limiter-flexible/package.json')}, express-rate-limit ${version('../node_modules/express-rate-limit/package.json')}

${verdictText(findings)}
${findings.map(sectionText).join('\n')}
## How to read this

All contenders of a table run in one process and take turns in short rounds of ${(options.quick ? quick : full).operations.toLocaleString('en')} requests, in an order
that rotates, after rounds that do not count. A figure is the median of its rounds in CPU time, of all threads, so that
garbage collection counts and other programs do not; the middle half says how far rounds spread, and the clock what passed meanwhile.
A ratio is the median of the ratios of each round, because both sides of a round saw the same machine; it may differ a little from
the quotient of two medians. On a busy machine the figures move, the ratios much less.

With many keys in random order most of the time goes into memory that is not in the cache, the same for all; with one key it
is the work itself that is seen.

Keys are made beforehand and are the same strings, asked for in the same random order, for all. Answers that come as a promise
are awaited one at a time: no request is made before the one before it was answered. Every answer is looked at and kept alive, so that
no compiler can leave it out. Garbage is collected between turns, so that nobody pays for another's.

What the contenders do differs, and so does what they promise:

${descriptions.map(([name, does]) => `- **${name}**: ${does}.`).join('\n')}
`
}

function version(/** @type {string} */ manifest) {
  return JSON.parse(readFileSync(new URL(manifest, import.meta.url), 'utf8')).version
}
