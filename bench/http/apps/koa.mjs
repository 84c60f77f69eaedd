// @ts-check
import { createServer } from 'node:http'
import Koa from 'koa'
import { answer, most, windowMs } from '../answer.mjs'
import { listen } from '../listen.mjs'

const app = new Koa()
if (process.argv[2] === 'fluxgate') {
  const { rateLimit } = await import('fluxgate-js/koa')
  app.use(rateLimit({ capacity: most, window: `${windowMs}ms` }))
}
app.use((context) => {
  context.body = answer
})
listen(createServer(app.callback()))
