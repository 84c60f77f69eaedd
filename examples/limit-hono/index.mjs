import { serve } from '@hono/node-server'
import { rateLimit } from 'fluxgate-js/hono'
import { Hono } from 'hono'

const app = new Hono()
app.use(rateLimit({ id: 'per-address', capacity: 60, window: '1m' }))
// A second limit for logins: a login must pass both.
app.use('/login', rateLimit({ id: 'login', method: 'POST', capacity: 3, window: '1m' }))
app.get('/', (c) => c.text('Hello.\n'))
app.post('/login', (c) => c.text('Welcome.\n'))

const port = Number(process.env.PORT ?? 3000)
const server = serve({ fetch: app.fetch, port, hostname: '127.0.0.1' }, (address) => {
  console.log(`http://127.0.0.1:${address.port}`)
})

process.once('SIGTERM', () => server.close())
