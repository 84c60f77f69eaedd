// @ts-check
/** The figures of README.md, which are those of RESULTS.md. `node bench/results/readme.mjs` writes them again. */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { withBlock } from './generated-block.mjs'

const readme = new URL('../../README.md', import.meta.url)
const results = new URL('../RESULTS.md', import.meta.url)
/** Names of generated blocks; each is enclosed in comments with its name. */
const blocks = {
  figures: (/** @type {string} */ results) => bullets(results).map(wrapped).join('\n'),
  others: othersText,
}
const lineWidth = 150

export function writeReadme() {
  writeFileSync(readme, withFigures(readFileSync(readme, 'utf8'), readFileSync(results, 'utf8')))
}

/** Replaces the figures of a README by those of the results. */
export function withFigures(/** @type {string} */ text, /** @type {string} */ results) {
  return Object.entries(blocks).reduce((all, [name, textOf]) => withBlock(all, name, textOf(results)), text)
}

/** Names the figures in which rate-limiter-flexible is ahead, so that the comparison stays true. */
function othersText(/** @type {string} */ results) {
  const cell = cellsOf(results)
  const theirs = 'rate-limiter-flexible'
  const bytes = (/** @type {string} */ row) =>
    Number(cell('Redis', 'Bytes per key, 100,000 keys, one decision each', row, 'used_memory'))
  const oneCaller = Number(cell('Redis', 'Single band, one caller', 'FluxGate', `relative to ${theirs}`))
  const ahead = ['has more stores']
  if (bytes(theirs) < bytes('TOKEN_BUCKET'))
    ahead.push(`uses ${bytes(theirs)} bytes of Redis's used_memory per key (FluxGate: ${bytes('TOKEN_BUCKET')})`)
  if (oneCaller < 0.95)
    ahead.push(`is ${(1 / oneCaller).toFixed(1)} times as fast on Redis for a single caller that waits for each reply`)
  const list = new Intl.ListFormat('en', { type: 'conjunction' }).format(ahead)
  return `Where others do better: ${theirs} ${list}.`
}

/** @returns {string[]} */
function bullets(/** @type {string} */ results) {
  const cell = cellsOf(results)
  const [ours, theirs] = ['FluxGate', 'rate-limiter-flexible']
  const relative = `relative to ${theirs}`
  const redis = (/** @type {string} */ table, /** @type {string} */ row, /** @type {string} */ column) =>
    cell('Redis', table, row, column)
  const inMemory = (/** @type {string} */ row) => cell('Single band', '100,000 keys, all allowed', row, 'ns/op')
  const bytes = (/** @type {string} */ row) => cell('Memory', '1,000,000 live keys, single band', row, 'bytes per key')
  const target = (/** @type {string} */ section, /** @type {string} */ figure) => targetOf(results, section, figure)
  const one = 'Single band, 512 callers'
  const union = `${theirs}, RateLimiterUnion`
  const rejected = 'Requests for a rejected key, 64 callers'
  const cpuShare = target('Redis', `CPU time of Redis, single band, 512 callers vs ${theirs}`)
  const matching = ['same requests', 'requests for all'].map((what) =>
    target('Matching', `cost of matching, 10,000 vs 10 rules, ${what}`),
  )
  return [
    `**Fast on Redis.** ${redis(one, ours, 'decisions/s')} decisions/s with 512 concurrent callers, ${redis(one, ours, relative)} times as many as ${theirs}, at ${(Number(cpuShare) * 100).toFixed(0)} % of its Redis CPU time per decision. All bands of all matching rules are one script call; with three bands it makes ${redis('Three bands, 512 callers', ours, `relative to ${union}`)} times as many decisions. With [leases](docs/guide/redis.md#leases) it reaches ${redis('Single band, LEASED, 100 keys, 512 callers', 'FluxGate, LEASED', 'decisions/s')} decisions/s on 100 busy keys, and the limit still holds.`,
    `**Cheap rejections.** A rejected request changes no counter, and its rejection is cached. A client that keeps retrying gets ${redis(rejected, ours, 'decisions/s')} rejections/s from one process, for ${Number(redis(rejected, ours, 'Redis calls/s')).toFixed(1)} Redis calls per second.`,
    `**Small and fast in memory.** ${inMemory('FluxGate consumeSync')} ns per \`consumeSync\` and ${inMemory('FluxGate consume')} ns per \`consume\` with 100,000 keys (${theirs}: ${inMemory(`${theirs} consume`)} ns), and ${bytes('FluxGate memory store')} bytes per key (${theirs}: ${bytes(theirs)}, express-rate-limit: ${bytes('express-rate-limit MemoryStore')}).`,
    `**Many rules.** Matching a request against 10,000 rules takes ${matching[0]} to ${matching[1]} times as long as against 10.`,
    `**Available without Redis.** While Redis is down, each process limits locally: p99 is ${target('Redis', 'p99 ms while Redis is unavailable, 64 callers')} ms with 64 concurrent callers. Exact decisions resume by themselves.`,
  ]
}

/** Returns a function that finds a cell, without its quartiles. */
function cellsOf(/** @type {string} */ results) {
  return (
    /** @type {string} */ section,
    /** @type {string} */ title,
    /** @type {string} */ row,
    /** @type {string} */ column,
  ) => {
    const text = partOf(partOf(results, '## ', section), '### ', title)
    const [head = [], , ...rows] = text
      .split('\n')
      .filter((line) => line.startsWith('|'))
      .map((line) => line.split('|').map((each) => each.trim()))
    const found = rows.find((cells) => cells[1] === row)?.[head.indexOf(column)]
    if (found === undefined) throw new Error(`RESULTS.md has no ${column} of ${row} in ${section}, ${title}.`)
    return /** @type {string} */ (found.split(' ')[0])
  }
}

/** Returns the median of a figure with a target. */
function targetOf(/** @type {string} */ results, /** @type {string} */ section, /** @type {string} */ figure) {
  for (const line of partOf(results, '## ', 'Targets').split('\n')) {
    const [, of, name, median] = line.split('|').map((each) => each.trim())
    if (of === section && name === figure && median !== undefined) return median
  }
  throw new Error(`RESULTS.md has no target "${figure}" in ${section}.`)
}

/** Returns the text between a heading and the next one of the same level. */
function partOf(/** @type {string} */ text, /** @type {string} */ mark, /** @type {string} */ heading) {
  const lines = text.split('\n')
  const from = lines.indexOf(`${mark}${heading}`)
  if (from === -1) throw new Error(`RESULTS.md has no heading "${heading}".`)
  const rest = lines.slice(from + 1)
  const to = rest.findIndex((line) => line.startsWith(mark))
  return rest.slice(0, to === -1 ? undefined : to).join('\n')
}

/** Returns a bullet with lines of limited width. */
function wrapped(/** @type {string} */ text) {
  const lines = ['-']
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? ''
    if (line.length + word.length < lineWidth) lines[lines.length - 1] = `${line} ${word}`
    else lines.push(`  ${word}`)
  }
  return lines.join('\n')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeReadme()
