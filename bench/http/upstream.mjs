// @ts-check
/** The upstream of all proxies: sends the same small JSON document for every request, at minimal cost. */
import { createServer } from 'node:net'
import { answer } from './answer.mjs'
import { listen } from './listen.mjs'

const body = JSON.stringify(answer)
const response = Buffer.from(
  `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: ${new Date().toUTCString()}\r\nX-Request: 1\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
)
const end = Buffer.from('\r\n\r\n')

listen(
  createServer({ noDelay: true }, (socket) => {
    socket.on('error', () => {})
    socket.on('data', (data) => {
      for (let at = data.indexOf(end); at !== -1; at = data.indexOf(end, at + 4)) socket.write(response)
    })
  }),
)
