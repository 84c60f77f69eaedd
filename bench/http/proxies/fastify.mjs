// @ts-check
/** @fastify/http-proxy with @fastify/rate-limit, configured as documented. */
import proxy from '@fastify/http-proxy'
import rateLimit from '@fastify/rate-limit'
import Fastify from 'fastify'
import { most, windowMs } from '../answer.mjs'
import { tellPort } from '../listen.mjs'

const app = Fastify()
await app.register(rateLimit, { max: most, timeWindow: windowMs })
await app.register(proxy, {
  upstream: `http://127.0.0.1:${process.argv[2]}`,
  prefix: '/api',
  rewritePrefix: '/api',
})
await app.listen({ port: 0, host: '127.0.0.1' })
tellPort(app.server)
