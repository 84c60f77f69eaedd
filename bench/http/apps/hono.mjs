// @ts-check
import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import { rateLimiter as peer } from 'hono-rate-limiter'
import { rateLimit } from '../../../dist/app/hono.js'
import { answer, most, windowMs } from '../answer.mjs'
import { listen } from '../listen.mjs'

const app = new Hono()
if (process.argv[2] === 'fluxgate') app.use(rateLimit({ capacity: most, window: `${windowMs}ms` }))
if (process.argv[2] === 'peer') {
  const keyGenerator = (/** @type {any} */ context) => context.env.incoming.socket.remoteAddress
  app.use(peer({ limit: most, windowMs, keyGenerator }))
}
app.get('/api/items', (context) => context.json(answer))
listen(createServer(getRequestListener(app.fetch)))
