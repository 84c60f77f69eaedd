// @ts-check
/**
 * Asks a server for a decision every few milliseconds, whether or not the ones before were answered. A process of its own,
 * which does nothing else. `{ port }` begins, `'end'` ends, with the outcome.
 *
 * @typedef {object} Outcome
 * @property {number} answered
 * @property {number} failed
 * @property {number} p99Ms
 * @property {number} longestMs
 */
import { Agent, request } from 'node:http'
import { quantile } from '../measure.mjs'

const everyMs = 5
const body = JSON.stringify({ clientIp: '198.51.100.7', endpoint: '/a7', method: 'GET' })
const agent = new Agent({ keepAlive: true })

/** @type {number[]} */
let waitsMs = []
let failed = 0

function ask(/** @type {number} */ port) {
  const askedAt = performance.now()
  const headers = { 'Content-Type': 'application/json', 'Content-Length': body.length }
  request({ agent, port, host: '127.0.0.1', method: 'POST', path: '/api/ratelimit/check', headers }, (response) => {
    response.resume().on('end', () => {
      if (response.statusCode === 200) waitsMs.push(performance.now() - askedAt)
      else failed += 1
    })
  })
    .on('error', () => {
      failed += 1
    })
    .end(body)
}

/** @type {NodeJS.Timeout | undefined} */
let timer
process.on('message', (/** @type {{ port: number } | 'end'} */ order) => {
  clearInterval(timer)
  if (order !== 'end') {
    waitsMs = []
    failed = 0
    timer = setInterval(ask, everyMs, order.port)
  }
  const longestMs = waitsMs.reduce((most, ms) => Math.max(most, ms), 0)
  process.send?.({ answered: waitsMs.length, failed, p99Ms: quantile(waitsMs, 0.99), longestMs })
})
process.send?.('ready')
