// @ts-check
import { createServer } from 'node:http'
import express from 'express'
import { answer, most, windowMs } from '../answer.mjs'
import { listen } from '../listen.mjs'

const app = express()
if (process.argv[2] === 'fluxgate') {
  const { rateLimit } = await import('fluxgate-js/express')
  app.use(rateLimit({ capacity: most, window: `${windowMs}ms` }))
} else if (process.argv[2] === 'peer') {
  const { rateLimit } = await import('express-rate-limit')
  app.use(rateLimit({ limit: most, windowMs, standardHeaders: 'draft-8' }))
}
app.get('/api/items', (_request, response) => {
  response.json(answer)
})
listen(createServer(app))
