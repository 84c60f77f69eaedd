// @ts-check
import Fastify from 'fastify'
import { answer, most, windowMs } from '../answer.mjs'
import { tellPort } from '../listen.mjs'

const app = Fastify()
const [, , limiter] = process.argv
if (limiter === 'fluxgate' || limiter === 'alike') {
  const { rateLimit } = await import('fluxgate-js/fastify')
  const limit = { capacity: most, window: `${windowMs}ms` }
  await app.register(rateLimit, limiter === 'alike' ? { ...limit, headers: 'legacy' } : limit)
} else if (limiter === 'peer') {
  const { default: rateLimit } = await import('@fastify/rate-limit')
  await app.register(rateLimit, { max: most, timeWindow: windowMs })
}
// The first plugin costs every request some microseconds, and real applications always have one.
else await app.register((_app, _options, done) => done())
app.get('/api/items', async () => answer)
await app.listen({ port: 0, host: '127.0.0.1' })
tellPort(app.server)
