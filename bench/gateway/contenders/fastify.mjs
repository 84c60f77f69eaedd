// @ts-check
/** @fastify/http-proxy with @fastify/rate-limit, as their pages say. */
import proxy from '@fastify/http-proxy'
import rateLimit from '@fastify/rate-limit'
import Fastify from 'fastify'

const app = Fastify()
await app.register(rateLimit, { max: 1_000_000_000, timeWindow: '1 minute' })
await app.register(proxy, {
  upstream: `http://127.0.0.1:${process.env.UPSTREAM_PORT}`,
  prefix: '/api',
  rewritePrefix: '/api',
})
await app.listen({ port: 0, host: '127.0.0.1' })
const address = app.server.address()
process.send?.({ port: typeof address === 'object' ? address?.port : 0 })
process.on('message', () => process.send?.({ cpu: process.cpuUsage() }))
