// @ts-check
/**
 * A load generator: a number of connections with one request at a time on each. It runs in its own process and does little per
 * request, so that the server is the bottleneck. It never sleeps: a slow server would otherwise pay for waking it with
 * every response, which on a virtual machine costs more than the response. Receives an `Order`, sends an `Outcome`.
 *
 * @typedef {object} Order
 * @property {number} port
 * @property {number} connections
 * @property {number} seconds
 * @property {string} [request] raw HTTP request
 * @property {readonly string[]} [requests] raw HTTP requests, used in turn
 *
 * @typedef {object} Outcome
 * @property {number} perSecond requests answered with 200
 * @property {number} answered the same, as a number
 * @property {number} others requests answered with another status
 * @property {number} p50Ms
 * @property {number} p99Ms
 */
import { connect } from 'node:net'
import { quantile } from '../measure.mjs'

const usual =
  'GET /api/items?page=2 HTTP/1.1\r\nHost: shop.example.org\r\nUser-Agent: load\r\nAccept: application/json\r\nAccept-Encoding: gzip\r\nX-Api-Key: k-123456\r\n\r\n'
const separator = Buffer.from('\r\n\r\n')

/** @typedef {{ waitsMs: number[], others: number, isOver: boolean }} Tally */

/** @type {(port: number, next: () => Buffer, tally: Tally) => Promise<void>} */
const keepAsking = (port, next, tally) =>
  new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    /** @type {Buffer} */
    let rest = Buffer.alloc(0)
    /** Remaining bytes of a response whose head has been parsed. */
    let missing = 0
    let askedAt = 0
    const ask = () => {
      askedAt = performance.now()
      socket.write(next())
    }
    const answered = (/** @type {boolean} */ isGood) => {
      if (isGood) tally.waitsMs.push(performance.now() - askedAt)
      else tally.others += 1
      rest = Buffer.alloc(0)
      if (!tally.isOver) return ask()
      socket.destroy()
      resolve()
    }
    socket.on('connect', ask)
    socket.on('data', (data) => {
      if (missing > 0) {
        missing -= data.length
        if (missing <= 0) answered(true)
        return
      }
      rest = rest.length === 0 ? data : Buffer.concat([rest, data])
      const head = rest.indexOf(separator)
      if (head === -1) return
      const text = rest.toString('latin1', 0, head)
      const isGood = text.startsWith('HTTP/1.1 200')
      const [, length] = /\r\ncontent-length: (\d+)/i.exec(text) ?? []
      if (length === undefined) {
        if (rest.includes('\r\n0\r\n\r\n', head)) answered(isGood)
        return
      }
      const left = head + 4 + Number(length) - rest.length
      if (left <= 0) answered(isGood)
      // The bytes of a long response are counted, not collected.
      else if (isGood) missing = left
    })
    socket.on('error', reject)
  })

process.on('message', async (/** @type {Order} */ order) => {
  /** @type {Tally} */
  const tally = { waitsMs: [], others: 0, isOver: false }
  const requests = (order.requests ?? [order.request ?? usual]).map((request) => Buffer.from(request))
  let sent = 0
  const next = () => /** @type {Buffer} */ (requests[sent++ % requests.length])
  const startedAt = performance.now()
  const stayAwake = () => {
    tally.isOver = performance.now() - startedAt > order.seconds * 1000
    if (!tally.isOver) setImmediate(stayAwake)
  }
  stayAwake()
  await Promise.all(Array.from({ length: order.connections }, () => keepAsking(order.port, next, tally)))
  const { waitsMs, others } = tally
  const perSecond = (waitsMs.length * 1000) / (performance.now() - startedAt)
  process.send?.({
    perSecond,
    answered: waitsMs.length,
    others,
    p50Ms: quantile(waitsMs, 0.5),
    p99Ms: quantile(waitsMs, 0.99),
  })
})
process.send?.('ready')
