// @ts-check
/** `npm run bench -- compare`: compares this checkout with another one. Both must be built. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { merge, sectionText } from '../results/report.mjs'
import { writeResults } from '../results/results-file.mjs'
import { progress } from '../runs/progress.mjs'
import { gatewayArea, middlewareArea } from './http.mjs'
import { inPairs, ratioFigures } from './pairs.mjs'
import { redisArea } from './redis.mjs'

const areas = {
  redis: { title: 'Redis, EXACT', open: redisArea },
  gateway: { title: 'Gateway, one route, one limit', open: gatewayArea },
  middleware: { title: 'Middleware, one limit in memory', open: middlewareArea },
}

const usage = `Usage: npm run bench -- compare --other <checkout> [--pairs <n>] [--only <area>] [--record <name>]
  --other  another checkout of this repository, after \`npm ci\` and \`node scripts/bootstrap.mjs\`
  --pairs  number of alternating measurements of both; default 5
  --only   ${Object.keys(areas).join(', ')}; default: all
  --record writes the result to bench/RESULTS.md, under this name
`

const thisRoot = new URL('../../', import.meta.url)

export async function compare(/** @type {readonly string[]} */ args) {
  const { other, pairs, names, record } = readOptions(args)
  const figures = []
  for (const name of names) {
    const { title, open } = areas[name]
    const area = await open()
    try {
      const onPair = (/** @type {number} */ pair) => progress(`${name}: pair ${pair} of ${pairs}`)
      figures.push(ratioFigures(title, await inPairs(area, [thisRoot, other], pairs, onPair)))
    } finally {
      await area.stop()
    }
  }
  progress('')
  const note = `${pairs} pairs. The ratio is the median of this / other within each pair; higher is better for rates, lower for times.`
  const title = record === undefined ? 'Compare' : `Compared with ${record}`
  const found = merge([{ title, note, tables: [], figures, ratios: [] }])
  process.stdout.write(`${sectionText(found)}\n`)
  if (record !== undefined) writeResults([found])
}

function readOptions(/** @type {readonly string[]} */ args) {
  try {
    const text = /** @type {const} */ ({ type: 'string' })
    const { values } = parseArgs({ args: [...args], options: { other: text, pairs: text, only: text, record: text } })
    const { other, pairs = '5', only, record } = values
    const names = /** @type {(keyof typeof areas)[]} */ (Object.keys(areas)).filter((name) => (only ?? name) === name)
    if (names.length === 0)
      throw new Error(`--only must be one of ${Object.keys(areas).join(', ')}; received "${only}".`)
    const count = Number(pairs)
    if (!Number.isInteger(count) || count < 1)
      throw new Error(`--pairs must be an integer of at least 1; received "${pairs}".`)
    if (other === undefined) throw new Error('--other is missing. Pass the path of the checkout to compare with.')
    const folder = resolve(other)
    if (!existsSync(resolve(folder, 'dist/bundle/index.js')))
      throw new Error(`--other: ${other} is not built. Run node scripts/bootstrap.mjs there.`)
    return { other: pathToFileURL(`${folder}/`), pairs: count, names, record }
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n${usage}`)
    process.exit(2)
  }
}
