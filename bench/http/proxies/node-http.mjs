// @ts-check
/** A minimal node:http proxy: a server, a keep-alive agent and two pipes. No limiter. */
import { Agent, createServer, request } from 'node:http'
import { listen } from '../listen.mjs'

const agent = new Agent({ keepAlive: true, maxSockets: 256, noDelay: true })
listen(
  createServer((incoming, response) => {
    const outgoing = request({
      agent,
      host: '127.0.0.1',
      port: process.argv[2],
      method: incoming.method,
      path: incoming.url,
      headers: incoming.headers,
    })
    outgoing.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.rawHeaders)
      answer.pipe(response)
    })
    outgoing.on('error', () => response.destroy())
    incoming.pipe(outgoing)
  }),
)
