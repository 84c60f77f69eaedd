// @ts-check
/** Decisions over HTTP, single and batched, compared with a Fastify route that returns a constant. */
import { startProgram } from '../http/processes.mjs'
import { connections, requestFigures, serversInRounds } from '../http/rounds.mjs'
import { figure } from '../results/report.mjs'
import { timesAs, typical } from '../turns.mjs'

const title = 'Server'
const single = 'FluxGate, check'
const batched = 'FluxGate, check/batch'
const constant = 'Fastify, constant response'
const posted = 'Fastify, constant response, same request body'
const batchSize = 1_000
/** A few connections are enough for batches of a thousand. */
const batchConnections = 8

const check = (/** @type {number} */ i) => ({
  ruleSetId: 'api',
  clientIp: `198.51.100.${i % 250}`,
  userId: 'user-42',
  endpoint: '/api/items',
  method: 'GET',
})

const post = (/** @type {string} */ path, /** @type {object} */ body) => {
  const text = JSON.stringify(body)
  return `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
}

/** @type {import('../results/report.mjs').Section} */
export async function overServers(effort) {
  const ours = await startProgram(single, 'apps/server.mjs')
  const theirs = await startProgram(constant, 'apps/constant.mjs')
  const checks = Array.from({ length: batchSize }, (_, i) => check(i))
  try {
    const rows = await serversInRounds(
      title,
      [
        { ...ours, request: post('/api/ratelimit/check', check(7)) },
        { ...theirs, request: 'GET /constant HTTP/1.1\r\nHost: localhost\r\n\r\n' },
        { ...theirs, name: posted, request: post('/constant', check(7)) },
        {
          ...ours,
          name: batched,
          request: post('/api/ratelimit/check/batch', { checks }),
          connections: batchConnections,
        },
      ],
      effort,
    )
    const perRequest = { [single]: 1, [batched]: batchSize }
    const decisions = batchSize * timesAs(rows, 'perSecond', batched, single)
    return {
      title,
      note: `${connections} connections from a load generator to one server process; buckets in memory, one limit per address that is never reached. A check/batch request contains ${batchSize.toLocaleString('en')} checks and uses ${batchConnections} connections.`,
      tables: [],
      figures: [
        requestFigures(
          'Requests',
          rows.filter(({ name }) => name !== batched),
          constant,
        ),
        {
          title: 'Decisions',
          head: ['contender', 'decisions/s', 'server µs'],
          lines: Object.entries(perRequest).map(([name, size]) => {
            const row = rows.find((row) => row.name === name)
            return [name, figure(size * typical(row, 'perSecond')), figure(typical(row, 'serverUs') / size, 1)]
          }),
        },
      ],
      ratios: [
        { what: `check vs ${constant}`, measured: timesAs(rows, 'perSecond', single, constant), atLeast: 0.6 },
        { what: 'decisions/s, batched vs single', measured: decisions, atLeast: 10 },
      ],
    }
  } finally {
    for (const { stop } of [ours, theirs]) stop()
  }
}
