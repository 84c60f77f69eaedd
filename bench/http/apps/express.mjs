// @ts-check

import { createServer } from 'node:http'
import express from 'express'
import { rateLimit as peer } from 'express-rate-limit'
import { rateLimit } from '../../../dist/app/express.js'
import { answer, most, windowMs } from '../answer.mjs'
import { listen } from '../listen.mjs'

const app = express()
if (process.argv[2] === 'fluxgate') app.use(rateLimit({ capacity: most, window: `${windowMs}ms` }))
if (process.argv[2] === 'peer') app.use(peer({ limit: most, windowMs, standardHeaders: 'draft-8' }))
app.get('/api/items', (_request, response) => {
  response.json(answer)
})
listen(createServer(app))
