// @ts-check
/**
 * One server per framework in a process of its own. The limiter decides after `x-delay` milliseconds; `x-act` selects what
 * the application does. Responses carry the id of their request, and a digest of its body.
 */
import 'reflect-metadata'
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { buffer } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { serve } from '@hono/node-server'
import { All, Controller, Module, Req, Res } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { createFluxGate } from '../../../dist/index.js'
import { rateLimit as expressLimit } from '../../../dist/middleware/express.js'
import { rateLimit as fastifyLimit } from '../../../dist/middleware/fastify.js'
import { rateLimit as fetchLimit } from '../../../dist/middleware/fetch.js'
import { rateLimit as honoLimit } from '../../../dist/middleware/hono.js'
import { rateLimit as koaLimit } from '../../../dist/middleware/koa.js'
import { RateLimitModule } from '../../../dist/middleware/nest.js'
import { rateLimit as nodeLimit } from '../../../dist/middleware/node.js'

const express4 = createRequire(import.meta.url)('express4')
const gate = await createFluxGate({
  rules: {
    id: 'api',
    rules: [
      { id: 'all', limitScope: 'GLOBAL', bands: [{ capacity: 1_000_000, window: '1h' }] },
      {
        id: 'none',
        when: { 'header.x-act': 'reject' },
        limitScope: 'GLOBAL',
        permits: 2,
        bands: [{ capacity: 1, window: '1h' }],
      },
    ],
  },
})

/** @type {any} */
const handler = {
  async check(/** @type {any} */ context, /** @type {any} */ options) {
    const delayMs = Number(context.headers['x-delay'] ?? 0)
    if (delayMs > 0) await pause(delayMs)
    return gate.check(context, options)
  },
  refund: (/** @type {any} */ context, /** @type {any} */ options) => gate.refund(context, options),
}
const limit = { handler }

/**
 * Reports that the application runs, and does what the request asks for. Resolves with the text of the response.
 *
 * @param {any} headers
 * @param {string} method
 * @param {() => Promise<Uint8Array | ArrayBuffer>} readBody
 */
async function application(headers, method, readBody) {
  const id = String(headers['x-id'])
  process.send?.({ ran: id })
  const act = headers['x-act']
  if (act === 'throw') throw new Error('thrown by the application')
  if (act === 'slow') await pause(20)
  if (act === 'unread' || (method !== 'POST' && method !== 'PUT')) return id
  return `${id}:${createHash('sha1')
    .update(new Uint8Array(await readBody()))
    .digest('hex')}`
}

/** An application with a deadline of its own answers before the limiter does. */
function answerEarly(/** @type {any} */ request, /** @type {any} */ response) {
  if (request.headers['x-act'] !== 'early') return
  setTimeout(() => {
    if (response.headersSent || response.destroyed) return
    response.writeHead(503, { 'X-Id': request.headers['x-id'], 'Content-Length': 0 })
    response.end()
  }, 5)
}

const listen = (/** @type {any} */ listener) =>
  new Promise((resolve) => {
    const server = createServer((request, response) => {
      answerEarly(request, response)
      return listener(request, response)
    }).listen(0, '127.0.0.1', () => resolve(server))
  })

function expressApp(/** @type {any} */ make) {
  const app = make()
  app.use(expressLimit(limit))
  app.use((/** @type {any} */ request, /** @type {any} */ response, /** @type {any} */ next) => {
    application(request.headers, request.method, () => buffer(request)).then((text) => {
      if (!response.headersSent) response.set('X-Id', request.headers['x-id']).end(text)
    }, next)
  })
  app.use(
    (/** @type {any} */ _error, /** @type {any} */ request, /** @type {any} */ response, /** @type {any} */ _next) => {
      if (!response.headersSent) response.status(500).set('X-Id', request.headers['x-id']).end()
    },
  )
  return listen(app)
}

async function fastifyApp() {
  const app = fastify()
  app.server.prependListener('request', answerEarly)
  app.addContentTypeParser(
    '*',
    { parseAs: 'buffer' },
    async (/** @type {any} */ _request, /** @type {any} */ body) => body,
  )
  await app.register(fastifyLimit, limit)
  app.all('*', async (request, reply) => {
    const readBody = async () => /** @type {Buffer} */ (request.body ?? Buffer.alloc(0))
    const text = await application(request.headers, request.method, readBody)
    if (!reply.raw.headersSent) return reply.header('X-Id', request.headers['x-id']).send(text)
    return reply.hijack()
  })
  app.setErrorHandler((_error, request, reply) => {
    if (!reply.raw.headersSent) reply.code(500).header('X-Id', request.headers['x-id']).send()
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  return app.server
}

function koaApp() {
  const app = new Koa()
  app.silent = true
  app.use(koaLimit(/** @type {any} */ (limit)))
  app.use(async (context) => {
    context.set('X-Id', String(context.headers['x-id']))
    context.body = await application(context.headers, context.method, () => buffer(context.req))
  })
  return listen(app.callback())
}

function honoApp() {
  const app = new Hono()
  app.use(honoLimit(/** @type {any} */ (limit)))
  app.all('*', async (context) => {
    const { method, raw } = context.req
    const text = await application(Object.fromEntries(raw.headers), method, () => context.req.arrayBuffer())
    return context.text(text, 200, { 'X-Id': context.req.header('x-id') ?? '' })
  })
  app.onError((_error, context) => context.body(null, 500, { 'X-Id': context.req.header('x-id') ?? '' }))
  return new Promise((resolve) => {
    const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, () => resolve(server))
  })
}

async function nestApp() {
  class Everything {
    async answer(/** @type {any} */ request, /** @type {any} */ response) {
      const text = await application(request.headers, request.method, () => buffer(request)).catch(() => undefined)
      if (response.headersSent) return
      response
        .status(text === undefined ? 500 : 200)
        .set('X-Id', request.headers['x-id'])
        .end(text)
    }
  }
  Req()(Everything.prototype, 'answer', 0)
  Res()(Everything.prototype, 'answer', 1)
  All('{*path}')(
    Everything.prototype,
    'answer',
    /** @type {any} */ (Object.getOwnPropertyDescriptor(Everything.prototype, 'answer')),
  )
  Controller()(Everything)
  class Root {}
  Module({ imports: [RateLimitModule.forRoot(limit)], controllers: [Everything] })(Root)
  const app = await NestFactory.create(Root, { logger: false, bodyParser: false })
  app.getHttpServer().prependListener('request', answerEarly)
  await app.listen(0, '127.0.0.1')
  return app.getHttpServer()
}

const nodeApp = () =>
  listen(
    nodeLimit(limit)(async (request, response) => {
      const readBody = () => buffer(request)
      const text = await application(request.headers, String(request.method), readBody).catch(() => undefined)
      if (response.headersSent || response.destroyed) return
      response.writeHead(text === undefined ? 500 : 200, { 'X-Id': String(request.headers['x-id']) }).end(text)
    }),
  )

/** Reads the body when the application asks for it. A body that is never read is discarded by node:http. */
const lazyBody = (/** @type {any} */ incoming) =>
  new ReadableStream(
    {
      async pull(controller) {
        controller.enqueue(new Uint8Array(await buffer(incoming)))
        controller.close()
      },
    },
    { highWaterMark: 0 },
  )

function fetchApp() {
  const limited = fetchLimit(limit).wrap(async (/** @type {Request} */ request, /** @type {any} */ _origin) => {
    const text = await application(Object.fromEntries(request.headers), request.method, () => request.arrayBuffer())
    return new Response(text, { headers: { 'X-Id': request.headers.get('x-id') ?? '' } })
  })
  return listen(async (/** @type {any} */ incoming, /** @type {any} */ outgoing) => {
    const leaving = new AbortController()
    outgoing.once('close', () => leaving.abort())
    const { method, headers } = incoming
    const body = method === 'POST' || method === 'PUT' ? lazyBody(incoming) : null
    const init = /** @type {any} */ ({ method, headers, body, duplex: 'half', signal: leaving.signal })
    const request = new Request(`http://a${incoming.url}`, init)
    const response = await limited(request, { remoteAddress: '127.0.0.1' }).catch(
      () => new Response(null, { status: 500, headers: { 'X-Id': incoming.headers['x-id'] } }),
    )
    if (outgoing.headersSent || outgoing.destroyed) return
    outgoing.writeHead(response.status, Object.fromEntries(response.headers))
    outgoing.end(Buffer.from(await response.arrayBuffer()))
  })
}

/** @type {Record<string, () => Promise<any>>} */
const apps = {
  express5: () => expressApp(express),
  express4: () => expressApp(express4),
  fastify: fastifyApp,
  koa: koaApp,
  hono: honoApp,
  nest: nestApp,
  node: nodeApp,
  fetch: fetchApp,
}
/** @type {Record<string, number>} */
const ports = {}
for (const [name, start] of Object.entries(apps)) ports[name] = (await start()).address().port
/** Everything that was reported before has arrived by the time of the answer. */
process.on('message', () => process.send?.({ isSettled: true }))
process.send?.({ ports })
