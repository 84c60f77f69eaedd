// @ts-check
import { createServer } from 'node:http'
import { rateLimit } from '../../../dist/app/node.js'
import { answer, most, windowMs } from '../answer.mjs'
import { listen } from '../listen.mjs'

/** @type {import('node:http').RequestListener} */
const application = (_request, response) => {
  const body = JSON.stringify(answer)
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }).end(body)
}
const limited = rateLimit({ capacity: most, window: `${windowMs}ms` })
listen(createServer(process.argv[2] === 'fluxgate' ? limited(application) : application))
