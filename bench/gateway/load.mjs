// @ts-check
/** Keeps `connections` requests under way for a while, each connection one at a time, and counts the answers. */
import { connect } from 'node:net'

const [port = '0', connections = '64', seconds = '5', path = '/api/items?page=2'] = process.argv.slice(2)
const request = Buffer.from(
  `GET ${path} HTTP/1.1\r\nHost: shop.example.org\r\nUser-Agent: load\r\nAccept: application/json\r\nAccept-Encoding: gzip\r\nX-Api-Key: k-123456\r\n\r\n`,
)
let answered = 0
let others = 0
const separator = Buffer.from('\r\n\r\n')

function open() {
  const socket = connect({ port: Number(port), host: '127.0.0.1', noDelay: true })
  /** @type {Buffer} */
  let rest = Buffer.alloc(0)
  socket.on('connect', () => socket.write(request))
  socket.on('data', (data) => {
    rest = rest.length === 0 ? data : Buffer.concat([rest, data])
    const head = rest.indexOf(separator)
    if (head === -1) return
    const text = rest.toString('latin1', 0, head)
    const [, length] = /\r\ncontent-length: (\d+)/i.exec(text) ?? []
    if (length === undefined ? !rest.includes('\r\n0\r\n\r\n', head) : rest.length < head + 4 + Number(length)) return
    if (text.startsWith('HTTP/1.1 200')) answered += 1
    else others += 1
    rest = Buffer.alloc(0)
    socket.write(request)
  })
  socket.on('error', (error) => {
    throw error
  })
}

for (let i = 0; i < Number(connections); i++) open()
const warmUpMs = 1_500
setTimeout(() => {
  const startedAt = performance.now()
  const before = answered
  process.send?.({ event: 'begin' })
  setTimeout(() => {
    const perSecond = Math.round(((answered - before) * 1_000) / (performance.now() - startedAt))
    process.send?.({ event: 'end', perSecond, answered: answered - before, others }, () => process.exit())
  }, Number(seconds) * 1_000)
}, warmUpMs)
