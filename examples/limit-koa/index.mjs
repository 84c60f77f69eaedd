import { createFluxGate } from 'fluxgate-js'
import { rateLimit } from 'fluxgate-js/koa'
import Koa from 'koa'

const gate = await createFluxGate({
  rules: {
    id: 'api',
    rules: [
      { id: 'per-address', path: '/**', bands: [{ label: 'minute', capacity: 60, window: '1m' }] },
      { id: 'login', path: '/login', method: 'POST', bands: [{ label: 'tries', capacity: 3, window: '1m' }] },
    ],
  },
})

const app = new Koa()
app.use(rateLimit({ gate }))
app.use((context) => {
  context.body = context.path === '/login' ? 'Welcome.\n' : 'Hello.\n'
})

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}`)
})

process.once('SIGTERM', () => server.close(() => gate.close()))
