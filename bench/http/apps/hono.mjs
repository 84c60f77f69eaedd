// @ts-check
import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import { answer, most, windowMs } from '../answer.mjs'
import { listen } from '../listen.mjs'

const app = new Hono()
if (process.argv[2] === 'fluxgate') {
  const { rateLimit } = await import('fluxgate-js/hono')
  app.use(rateLimit({ capacity: most, window: `${windowMs}ms` }))
} else if (process.argv[2] === 'peer') {
  const { rateLimiter } = await import('hono-rate-limiter')
  const keyGenerator = (/** @type {any} */ context) => context.env.incoming.socket.remoteAddress
  app.use(rateLimiter({ limit: most, windowMs, keyGenerator }))
}
app.get('/api/items', (context) => context.json(answer))
listen(createServer(getRequestListener(app.fetch)))
