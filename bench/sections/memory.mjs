// @ts-check
/** Memory per live key; each contender runs in its own process. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Broken } from '../measure.mjs'
import { figure } from '../results/report.mjs'

const child = fileURLToPath(new URL('../memory-child.mjs', import.meta.url))
const contenders = /** @type {const} */ ([
  ['fluxGate', 'FluxGate memory store'],
  ['flexible', 'rate-limiter-flexible'],
  ['express', 'express-rate-limit MemoryStore'],
  ['bareMap', 'bare Map bucket'],
])

export const title = 'Memory'

/** @type {import('../results/report.mjs').Section} */
export async function memory({ memoryKeys, progress }) {
  const rows = []
  for (const [contender, name] of contenders) {
    progress(`${title}: ${name}`)
    rows.push({ name, ...(await fill(contender, memoryKeys)) })
  }
  return {
    title,
    note: 'Live bytes after garbage collection (heapUsed + external), excluding the key strings. rate-limiter-flexible prefixes each key; its figure includes that copy.',
    tables: [],
    figures: [
      {
        title: `${memoryKeys.toLocaleString('en')} live keys, single band`,
        head: ['contender', 'bytes per key', 'ns to add a key'],
        lines: rows.map(({ name, perKey, fillNs }) => [name, figure(perKey), figure(fillNs)]),
      },
    ],
    ratios: [
      { what: 'bytes per live key, excluding the key string', measured: rows[0]?.perKey ?? Number.NaN, atMost: 150 },
    ],
  }
}

/** @returns {Promise<{ perKey: number, fillNs: number }>} */
async function fill(/** @type {string} */ contender, /** @type {number} */ keys) {
  const args = ['--expose-gc', '--max-old-space-size=3072', child, contender, String(keys)]
  const { stdout } = await promisify(execFile)(process.execPath, args)
  const { allowed, ...figures } = JSON.parse(stdout)
  if (allowed !== keys + 1) throw new Broken(`${contender} rejected requests while it was filled.`)
  return figures
}
