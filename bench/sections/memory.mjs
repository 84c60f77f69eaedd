// @ts-check
/** What a live key costs in memory, each contender in a process of its own. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Broken } from '../measure.mjs'

const child = fileURLToPath(new URL('../memory-child.mjs', import.meta.url))
const contenders = /** @type {const} */ ([
  ['fluxGate', 'FluxGate memory store'],
  ['flexible', 'rate-limiter-flexible'],
  ['express', 'express-rate-limit MemoryStore'],
  ['bareMap', 'bare Map bucket'],
])

export const title = 'Memory'

/** @type {import('../report.mjs').Section} */
export async function memory({ memoryKeys, progress }) {
  const rows = []
  for (const [contender, name] of contenders) {
    progress(`${title}: ${name}`)
    rows.push({ name, ...(await fill(contender, memoryKeys)) })
  }
  return {
    title,
    note: 'Bytes alive after garbage collection (heapUsed + external), less what the keys alone take. rate-limiter-flexible prefixes each key, and that copy is in its figure.',
    tables: [],
    figures: [
      {
        title: `${memoryKeys.toLocaleString('en')} live keys, single band`,
        head: ['contender', 'bytes per key', 'ns to add one'],
        lines: rows.map(({ name, perKey, fillNs }) => [name, perKey.toFixed(0), fillNs.toFixed(0)]),
      },
    ],
    ratios: [
      { what: 'bytes per live key beyond the key string', measured: rows[0]?.perKey ?? Number.NaN, atMost: 150 },
    ],
  }
}

/** @returns {Promise<{ perKey: number, fillNs: number }>} */
async function fill(/** @type {string} */ contender, /** @type {number} */ keys) {
  const args = ['--expose-gc', '--max-old-space-size=3072', child, contender, String(keys)]
  const { stdout } = await promisify(execFile)(process.execPath, args)
  const { allowed, ...figures } = JSON.parse(stdout)
  if (allowed !== keys + 1) throw new Broken(`${contender} did not let everybody through while it was filled.`)
  return figures
}
