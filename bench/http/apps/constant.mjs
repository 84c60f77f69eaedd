// @ts-check
/** A minimal Fastify route. */
import Fastify from 'fastify'
import { tellPort } from '../listen.mjs'

const app = Fastify()
app.get('/constant', async () => ({ allowed: true }))
app.post('/constant', async () => ({ allowed: true }))
await app.listen({ port: 0, host: '127.0.0.1' })
tellPort(app.server)
