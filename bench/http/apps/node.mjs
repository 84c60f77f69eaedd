// @ts-check
import { createServer } from 'node:http'
import { answer, most, windowMs } from '../answer.mjs'
import { listen } from '../listen.mjs'

/** @type {import('node:http').RequestListener} */
let application = (_request, response) => {
  const body = JSON.stringify(answer)
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }).end(body)
}
if (process.argv[2] === 'fluxgate') {
  const { rateLimit } = await import('fluxgate-js/node')
  application = rateLimit({ capacity: most, window: `${windowMs}ms` })(application)
}
listen(createServer(application))
