// @ts-check
/**
 * Asks a server: so many connections, one request at a time on each. A process of its own, which does next to nothing for a
 * request, so that the server is what is measured. It never sleeps: a server that is slow enough for it to do so would pay
 * for waking it with every answer, which on a virtual machine costs more than the answer. `{ port, connections, seconds }` in,
 * an `Outcome` out.
 *
 * @typedef {object} Outcome
 * @property {number} perSecond requests answered with 200
 * @property {number} others requests answered otherwise
 * @property {number} p50Ms
 * @property {number} p99Ms
 */
import { connect } from 'node:net'
import { quantile } from '../measure.mjs'

const request = Buffer.from(
  'GET /api/items?page=2 HTTP/1.1\r\nHost: shop.example.org\r\nUser-Agent: load\r\nAccept: application/json\r\nAccept-Encoding: gzip\r\nX-Api-Key: k-123456\r\n\r\n',
)
const separator = Buffer.from('\r\n\r\n')

/** @typedef {{ waitsMs: number[], others: number, isOver: boolean }} Tally */

/** @type {(port: number, tally: Tally) => Promise<void>} */
const keepAsking = (port, tally) =>
  new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    /** @type {Buffer} */
    let rest = Buffer.alloc(0)
    let askedAt = 0
    const ask = () => {
      askedAt = performance.now()
      socket.write(request)
    }
    socket.on('connect', ask)
    socket.on('data', (data) => {
      rest = rest.length === 0 ? data : Buffer.concat([rest, data])
      const head = rest.indexOf(separator)
      if (head === -1) return
      const text = rest.toString('latin1', 0, head)
      const [, length] = /\r\ncontent-length: (\d+)/i.exec(text) ?? []
      if (length === undefined ? !rest.includes('\r\n0\r\n\r\n', head) : rest.length < head + 4 + Number(length)) return
      if (text.startsWith('HTTP/1.1 200')) tally.waitsMs.push(performance.now() - askedAt)
      else tally.others += 1
      rest = Buffer.alloc(0)
      if (!tally.isOver) return ask()
      socket.destroy()
      resolve()
    })
    socket.on('error', reject)
  })

process.on('message', async (/** @type {{ port: number, connections: number, seconds: number }} */ order) => {
  /** @type {Tally} */
  const tally = { waitsMs: [], others: 0, isOver: false }
  const startedAt = performance.now()
  const stayAwake = () => {
    tally.isOver = performance.now() - startedAt > order.seconds * 1000
    if (!tally.isOver) setImmediate(stayAwake)
  }
  stayAwake()
  await Promise.all(Array.from({ length: order.connections }, () => keepAsking(order.port, tally)))
  const { waitsMs, others } = tally
  const perSecond = (waitsMs.length * 1000) / (performance.now() - startedAt)
  process.send?.({ perSecond, others, p50Ms: quantile(waitsMs, 0.5), p99Ms: quantile(waitsMs, 0.99) })
})
process.send?.('ready')
