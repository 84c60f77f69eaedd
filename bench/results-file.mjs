// @ts-check
/** RESULTS.md: what was measured last of every section, when, and on which machine. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, totalmem } from 'node:os'
import { descriptions } from './contenders.mjs'
import { sectionText, verdicts, verdictText } from './report.mjs'

const file = new URL('RESULTS.md', import.meta.url)
const demands = 'Demands'
const explanation = 'How to read this'

/** @typedef {import('./report.mjs').Findings} Findings */

export function writeResults(/** @type {readonly Findings[]} */ findings) {
  const before = existsSync(file) ? readFileSync(file, 'utf8') : ''
  const measured = `Measured on ${new Date().toISOString().slice(0, 10)}: ${machine()}.`
  writeFileSync(file, withFindings(before, findings, measured))
}

/**
 * The text with the sections that were measured now; the others stay as they are.
 *
 * @param {string} before
 * @param {readonly Findings[]} findings
 * @param {string} measured when, and where
 */
export function withFindings(before, findings, measured) {
  const { sections, lines } = read(before)
  for (const found of findings) {
    sections.set(found.title, sectionText(found, measured))
    lines.set(found.title, verdicts(found))
  }
  const demanded = [...sections.keys()].flatMap((title) => lines.get(title) ?? [])
  return `# Speed, side by side

Written by \`npm run bench\`; do not edit.

${[verdictText(demanded), ...sections.values()].join('\n')}
## ${explanation}

${howToRead}
${descriptions.map(([name, does]) => `- **${name}**: ${does}.`).join('\n')}
`
}

/** By the title of a section: its text, and its lines in the table of demands. */
function read(/** @type {string} */ text) {
  const [, ...parts] = text.split(/^## /m)
  const sections = new Map(parts.map((part) => [part.slice(0, part.indexOf('\n')), `## ${part.trimEnd()}\n`]))
  const [, , ...table] = (sections.get(demands) ?? '').split('\n').filter((line) => line.startsWith('|'))
  sections.delete(demands)
  sections.delete(explanation)
  const lines = new Map([...sections.keys()].map((title) => [title, /** @type {string[][]} */ ([])]))
  for (const row of table) {
    const cells = row.split('|').map((cell) => cell.trim())
    lines.get(cells[1] ?? '')?.push(cells.slice(1, -1))
  }
  return { sections, lines }
}

function machine() {
  const memoryGiB = (totalmem() / 2 ** 30).toFixed(1)
  return [
    `${cpus()[0]?.model.trim()}, ${availableParallelism()} cores, ${memoryGiB} GiB, ${process.platform} ${process.arch}`,
    `Node.js ${process.version}`,
    `FluxGate ${version('../package.json')}`,
    ...['rate-limiter-flexible', 'express-rate-limit', 'ioredis', 'redis'].map(
      (name) => `${name} ${version(`../node_modules/${name}/package.json`)}`,
    ),
  ].join('; ')
}

function version(/** @type {string} */ manifest) {
  return JSON.parse(readFileSync(new URL(manifest, import.meta.url), 'utf8')).version
}

const howToRead = `All contenders of a table run in one process and take turns in short rounds, in another order each time, after rounds that do
not count. A figure is the median of its rounds. A ratio is the median of the ratios of each round, because both sides of a round saw the
same machine; it may differ a little from the quotient of two medians. On a busy machine the figures move, the ratios much less.

Without Redis, a round is 100,000 requests and what counts is CPU time, of all threads, so that garbage collection counts and other programs
do not; the middle half says how far rounds spread, and the clock what passed meanwhile. With many keys in random order most of the time
goes into memory that is not in the cache, the same for all; with one key it is the work itself that is seen.

Keys are made beforehand and are the same strings, asked for in the same random order, for all. Answers that come as a promise
are awaited one at a time: no request is made before the one before it was answered. Every answer is looked at and kept alive, so that
no compiler can leave it out. Garbage is collected between turns, so that nobody pays for another's.

With Redis, a turn lasts as long for everybody, what counts is the clock, and so many callers ask at once as the table says, each of them again as soon as it has its
answer. Beside it stands what a decision cost: *client* is CPU time of the process that asks, *script* the time that Redis
says it spent in scripts and the commands that they call, *server* the CPU time of Redis for everything, which includes reading what it
was sent and answering.

What the contenders do differs, and so does what they promise:
`
