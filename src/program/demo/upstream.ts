import { createServer, type Server } from 'node:http'

/** An example upstream. It answers every request with a greeting that shows the forwarded identity, method and path. */
export function demoUpstream(): Server {
  return createServer(({ headers, method, url }, response) => {
    const hello = headers['x-user-id'] ?? headers['x-forwarded-for'] ?? 'you'
    const body = `${JSON.stringify({ hello, method, path: url?.replace(/\?.*$/s, '') })}\n`
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) })
    response.end(body)
  })
}
