import { createServer, type Server } from 'node:http'

/** A service to put a gateway in front of: it greets on every path, and says what the gateway has told it. */
export function demoUpstream(): Server {
  return createServer(({ headers, method, url }, response) => {
    const hello = headers['x-user-id'] ?? headers['x-forwarded-for'] ?? 'you'
    const body = `${JSON.stringify({ hello, method, path: url?.replace(/\?.*$/s, '') })}\n`
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) })
    response.end(body)
  })
}
