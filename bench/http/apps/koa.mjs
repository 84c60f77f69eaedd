// @ts-check
import { createServer } from 'node:http'
import Koa from 'koa'
import { rateLimit } from '../../../dist/app/koa.js'
import { answer, most, windowMs } from '../answer.mjs'
import { listen } from '../listen.mjs'

const app = new Koa()
if (process.argv[2] === 'fluxgate') app.use(rateLimit({ capacity: most, window: `${windowMs}ms` }))
app.use((context) => {
  context.body = answer
})
listen(createServer(app.callback()))
