// @ts-check
/** Processes that start concurrently and share one limit. */
import { startChild } from '../child.mjs'
import { startPrograms } from './programs.mjs'

export const capacity = 100
export const stallMs = 120
export const inFlight = 20
/** Calls per process: as many as the limit, so that each process could exhaust it alone. */
const calls = 100
const programCalls = 30

/**
 * @typedef {object} ColdStart
 * @property {string} name
 * @property {number} over requests allowed beyond the limit, in the worst run
 * @property {number} runsOver number of runs beyond the limit
 * @property {number} degraded degraded decisions in all runs
 * @property {number} stalled degraded decisions after the stall, in all runs; NaN without a stall
 */

/** @type {readonly (readonly [name: string, kind: string])[]} */
const libraryKinds = [
  ['createLimiter', 'createLimiter'],
  ['redisStore and ready()', 'redisStore'],
  ['createFluxGate', 'createFluxGate'],
]

/**
 * @param {string} uri
 * @param {{ runs: number, processes: number, progress: (text: string) => void }} effort
 * @returns {Promise<ColdStart[]>}
 */
export async function coldStarts(uri, { runs, processes, progress }) {
  const found = []
  for (const [name, kind] of libraryKinds)
    found.push(
      await repeat(name, runs, progress, (prefix) => {
        const settings = { kind, uri, prefix, capacity, calls, stallMs, inFlight }
        return Promise.all(Array.from({ length: processes }, () => runWorker(settings)))
      }),
    )
  for (const name of /** @type {const} */ (['serve', 'gateway']))
    found.push(
      await repeat(`fluxgate ${name}`, runs, progress, async (prefix) => {
        const settings = { uri, prefix, capacity, calls: programCalls, processes }
        const reports = await startPrograms(name, settings)
        return reports.map((report) => ({ ...report, stalled: Number.NaN }))
      }),
    )
  return found
}

/** @typedef {{ allowed: number, degraded: number, stalled: number }} Report */

/** @returns {Promise<Report>} */
async function runWorker(/** @type {object} */ settings) {
  const { heard, stop } = startChild(new URL('worker.mjs', import.meta.url), [JSON.stringify(settings)])
  try {
    return await heard()
  } finally {
    stop()
  }
}

/**
 * @param {string} name
 * @param {number} runs
 * @param {(text: string) => void} progress
 * @param {(prefix: string) => Promise<readonly Report[]>} run
 * @returns {Promise<ColdStart>}
 */
async function repeat(name, runs, progress, run) {
  const result = { name, over: 0, runsOver: 0, degraded: 0, stalled: 0 }
  for (let i = 0; i < runs; i++) {
    progress(`Faults: cold start by ${name}, run ${i + 1} of ${runs}, ${result.degraded} degraded so far`)
    const reports = await run(`faults-${name.replaceAll(/\W/g, '')}-${i}`)
    const sum = (/** @type {keyof Report} */ field) => reports.reduce((total, report) => total + report[field], 0)
    const over = Math.max(0, sum('allowed') - capacity)
    result.over = Math.max(result.over, over)
    if (over > 0) result.runsOver++
    result.degraded += sum('degraded')
    result.stalled += sum('stalled')
  }
  return result
}
