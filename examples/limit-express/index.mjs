import express from 'express'
import { createFluxGate } from 'fluxgate-js'
import { rateLimit } from 'fluxgate-js/express'

const gate = await createFluxGate({
  rules: {
    id: 'api',
    rules: [
      { id: 'per-address', path: '/**', bands: [{ label: 'minute', capacity: 60, window: '1m' }] },
      { id: 'login', path: '/login', method: 'POST', bands: [{ label: 'tries', capacity: 3, window: '1m' }] },
    ],
  },
})

const app = express()
app.use(rateLimit({ gate }))
app.get('/', (_request, response) => response.send('Hello.\n'))
app.post('/login', (_request, response) => response.send('Welcome.\n'))

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}`)
})

process.once('SIGTERM', () => server.close(() => gate.close()))
