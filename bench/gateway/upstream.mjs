// @ts-check
/** The service behind all contenders: answers every request with the same small JSON document, at next to no cost. */
import { createServer } from 'node:net'

const body = JSON.stringify({
  hello: 'world',
  items: Array.from({ length: 8 }, (_, id) => ({ id, name: `item ${id}` })),
})
const answer = Buffer.from(
  `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: ${new Date().toUTCString()}\r\nX-Request: 1\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
)
const end = Buffer.from('\r\n\r\n')

const server = createServer({ noDelay: true }, (socket) => {
  socket.on('error', () => {})
  socket.on('data', (data) => {
    for (let at = data.indexOf(end); at !== -1; at = data.indexOf(end, at + 4)) socket.write(answer)
  })
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.send?.({ port: typeof address === 'object' ? address?.port : 0 })
})
