// @ts-check
/** One server per framework in a process of its own. The limiter answers after `x-delay` milliseconds; `x-act` says what the application does. */
import 'reflect-metadata'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { setTimeout as pause } from 'node:timers/promises'
import { serve } from '@hono/node-server'
import { All, Controller, Module, Req, Res } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { createFluxGate } from '../../dist/index.js'
import { rateLimit as expressLimit } from '../../dist/middleware/express.js'
import { rateLimit as fastifyLimit } from '../../dist/middleware/fastify.js'
import { rateLimit as fetchLimit } from '../../dist/middleware/fetch.js'
import { rateLimit as honoLimit } from '../../dist/middleware/hono.js'
import { rateLimit as koaLimit } from '../../dist/middleware/koa.js'
import { RateLimitModule } from '../../dist/middleware/nest.js'
import { rateLimit as nodeLimit } from '../../dist/middleware/node.js'

const express4 = createRequire(import.meta.url)('express4')
const gate = await createFluxGate({
  rules: { id: 'api', rules: [{ id: 'all', limitScope: 'GLOBAL', bands: [{ capacity: 1_000_000, window: '1h' }] }] },
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

/** Reports that the application runs, and does what the request asks for. */
async function application(/** @type {any} */ headers) {
  const id = String(headers['x-id'])
  process.send?.({ ran: id })
  if (headers['x-act'] === 'throw') throw new Error('thrown by the application')
  if (headers['x-act'] === 'slow') await pause(20)
  return id
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
    application(request.headers).then((id) => {
      if (!response.headersSent) response.set('X-Id', id).end(id)
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
  await app.register(fastifyLimit, limit)
  app.all('*', async (request, reply) => {
    const id = await application(request.headers)
    if (!reply.raw.headersSent) return reply.header('X-Id', id).send(id)
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
    context.body = await application(context.headers)
  })
  return listen(app.callback())
}

function honoApp() {
  const app = new Hono()
  app.use(honoLimit(/** @type {any} */ (limit)))
  app.all('*', async (context) => {
    const id = await application(Object.fromEntries(context.req.raw.headers))
    return context.text(id, 200, { 'X-Id': id })
  })
  app.onError((_error, context) => context.body(null, 500, { 'X-Id': context.req.header('x-id') ?? '' }))
  return new Promise((resolve) => {
    const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, () => resolve(server))
  })
}

async function nestApp() {
  class Everything {
    async answer(/** @type {any} */ request, /** @type {any} */ response) {
      const id = await application(request.headers).catch(() => undefined)
      if (response.headersSent) return
      if (id === undefined) response.status(500).set('X-Id', request.headers['x-id']).end()
      else response.set('X-Id', id).end(id)
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
  const app = await NestFactory.create(Root, { logger: false })
  app.getHttpServer().prependListener('request', answerEarly)
  await app.listen(0, '127.0.0.1')
  return app.getHttpServer()
}

const nodeApp = () =>
  listen(
    nodeLimit(limit)(async (request, response) => {
      const id = await application(request.headers).catch(() => undefined)
      if (response.headersSent || response.destroyed) return
      response.writeHead(id === undefined ? 500 : 200, { 'X-Id': String(request.headers['x-id']) }).end(id)
    }),
  )

function fetchApp() {
  const limited = fetchLimit(limit).wrap(async (/** @type {Request} */ request, /** @type {any} */ _origin) => {
    const id = await application(Object.fromEntries(request.headers))
    return new Response(id, { headers: { 'X-Id': id } })
  })
  return listen(async (/** @type {any} */ incoming, /** @type {any} */ outgoing) => {
    const leaving = new AbortController()
    outgoing.once('close', () => leaving.abort())
    const request = new Request(`http://a${incoming.url}`, { headers: incoming.headers, signal: leaving.signal })
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
process.send?.({ ports })
