// @ts-check
/** Leases of several processes: CPU time of Redis per decision, and how evenly the decisions are divided. */
import { setTimeout as sleep } from 'node:timers/promises'
import { startChild } from '../child.mjs'
import { Broken } from '../measure.mjs'
import { figure, spreadFigure } from '../results/report.mjs'
import { freshPrefix } from './contenders.mjs'
import { highLimit } from './lease-distributions.mjs'
import { workOf } from './server.mjs'

/**
 * @typedef {{ perSecond: number, serverUs: number, fairness: number }} Turn
 * @typedef {{ name: string, keyCount: number, limit: { capacity: number, window: string }, isLimited?: boolean }} Load
 */

const program = new URL('lease-child.mjs', import.meta.url)
const callers = 512

/** @type {readonly Load[]} */
const loads = [
  { name: '100 keys', keyCount: 100, limit: highLimit },
  { name: 'one key', keyCount: 1, limit: highLimit },
  { name: 'one key at its limit', keyCount: 1, limit: { capacity: 10_000, window: '1s' }, isLimited: true },
]

/** @type {(server: import('./server.mjs').RedisServer, effort: import('../results/report.mjs').Pace) => Promise<{ table: import('../results/report.mjs').FigureTable, rows: readonly { name: string, serverUs: number }[] }>} */
export async function leaseProcesses(server, effort) {
  const rows = []
  const lines = []
  for (const load of loads)
    for (const count of effort.redis.leaseProcesses) {
      const name = `${load.name}, ${count === 1 ? 'one process' : `${count} processes`}`
      effort.progress(`Leases, ${name}`)
      const { perSecond, serverUs, fairness } = await takeTurn(server, load, count, effort.redis.seconds)
      if (!load.isLimited) rows.push({ name, serverUs })
      lines.push([name, figure(perSecond), figure(serverUs, 3), spreadFigure(fairness)])
    }
  const head = ['load', 'decisions/s', 'Redis CPU µs', 'smallest : largest share']
  return { table: { title: `LEASED, several processes with ${callers} callers each`, head, lines }, rows }
}

/** @type {(server: import('./server.mjs').RedisServer, load: Load, count: number, seconds: number) => Promise<Turn>} */
async function takeTurn(server, { keyCount, limit, isLimited = false }, count, seconds) {
  const rule = { ...limit, consistency: 'LEASED' }
  const settings = JSON.stringify({ prefix: freshPrefix(), rule, keyCount, callers })
  const children = Array.from({ length: count }, () => startChild(program, [server.uri, settings]))
  try {
    await Promise.all(children.map((child) => child.heard()))
    // All processes share the cores, so they take longer to warm up. Then batches grow to the demand of a second.
    await sleep(seconds * 2_000 * (count + 2))
    for (const { tell } of children) tell('start')
    const startedAt = performance.now()
    const before = await workOf(server)
    await sleep(seconds * 4_000)
    const reports = children.map((child) => child.heard())
    for (const { tell } of children) tell('report')
    /** @type {readonly { decisions: number, allowed: number, degraded: number }[]} */
    const results = await Promise.all(reports)
    const after = await workOf(server)
    const elapsedMs = performance.now() - startedAt
    if (results.some(({ degraded }) => degraded > 0)) throw new Broken('FluxGate made a degraded decision.')
    const decisions = results.reduce((sum, result) => sum + result.decisions, 0)
    const shares = results.map((result) => (isLimited ? result.allowed : result.decisions))
    return {
      perSecond: (decisions * 1000) / elapsedMs,
      serverUs: (after.serverUs - before.serverUs) / decisions,
      fairness: Math.min(...shares) / Math.max(...shares, 1),
    }
  } finally {
    for (const { stop } of children) stop()
  }
}
