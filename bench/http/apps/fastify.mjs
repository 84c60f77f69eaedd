// @ts-check
import peer from '@fastify/rate-limit'
import Fastify from 'fastify'
import { rateLimit } from '../../../dist/app/fastify.js'
import { answer, most, windowMs } from '../answer.mjs'
import { tellPort } from '../listen.mjs'

const app = Fastify()
const limit = { capacity: most, window: `${windowMs}ms` }
if (process.argv[2] === 'fluxgate') await app.register(rateLimit, limit)
else if (process.argv[2] === 'alike') await app.register(rateLimit, { ...limit, headers: 'legacy' })
else if (process.argv[2] === 'peer') await app.register(peer, { max: most, timeWindow: windowMs })
// Whatever it does, the first plugin costs every request some microseconds; and there is no application without one.
else await app.register((_app, _options, done) => done())
app.get('/api/items', async () => answer)
await app.listen({ port: 0, host: '127.0.0.1' })
tellPort(app.server)
