/** One small server per framework, all alike: some limits, then an application that responds on every path. */
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { serve as serveHono } from '@hono/node-server'
import { All, type ArgumentsHost, Controller, Module, Res } from '@nestjs/common'
import { BaseExceptionFilter, HttpAdapterHost, NestFactory } from '@nestjs/core'
import express from 'express'
import fastify, { type FastifyReply } from 'fastify'
import { type Context, Hono } from 'hono'
import Koa from 'koa'
import type { Decision } from '../../../src/index.js'
import { rateLimit as expressLimit } from '../../../src/middleware/express.js'
import { rateLimit as fastifyLimit } from '../../../src/middleware/fastify.js'
import { rateLimit as fetchLimit } from '../../../src/middleware/fetch.js'
import { rateLimit as honoLimit } from '../../../src/middleware/hono.js'
import { rateLimit as koaLimit } from '../../../src/middleware/koa.js'
import type { RateLimitOptions } from '../../../src/middleware/limits/create-guard.js'
import { RateLimitDecision, RateLimitGuard, RateLimitModule } from '../../../src/middleware/nest.js'
import { rateLimit as nodeLimit } from '../../../src/middleware/node.js'
import 'reflect-metadata'

/** The application behind the limits, and the errors that reached the framework's error handler. */
export interface Application {
  calls: number
  /** The status of its responses. Default 200. */
  status?: number
  readonly errors: unknown[]
  /** The decisions that the application found on its requests. */
  readonly decisions: (Decision | undefined)[]
  answer(): string | Promise<string>
  /** Called before the limits with the node:http response, for applications that respond by themselves. */
  onResponse?: (response: ServerResponse) => void
}

export interface Served {
  readonly server: Server
  /** Closes the limits but not the server. */
  closeLimits(): Promise<void>
}

export interface Adapter {
  readonly name: string
  /** A header of the request that hooks receive. */
  header(request: never, name: string): string | undefined
  /** Sends a body in `onRejected`. */
  respond(reply: never, body: string): unknown
  /** The limits, in the order in which they apply. */
  serve(limits: readonly RateLimitOptions[], application: Application): Promise<Served>
}

type Closing = { close(): Promise<void> }
const closeAll = async (limits: readonly Closing[]): Promise<void> => {
  await Promise.all(limits.map((limit) => limit.close()))
}

async function listening(server: Server): Promise<Server> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

export const portOf = (server: Pick<Server, 'address'>): number => (server.address() as AddressInfo).port

function served(server: Server, limits: readonly Closing[]): Served {
  return { server, closeLimits: () => closeAll(limits) }
}

interface Limited {
  readonly rateLimit?: Decision
}

/** Throws synchronously what the application throws synchronously. */
function called(application: Application, decision?: Decision): string | Promise<string> {
  application.calls += 1
  application.decisions.push(decision)
  return application.answer()
}

async function serveExpress(make: typeof express, options: readonly RateLimitOptions[], application: Application) {
  const app = make()
  const limits = options.map((option) => expressLimit(option))
  app.use((_request, response, next) => {
    application.onResponse?.(response)
    next()
  })
  for (const limit of limits) app.use(limit)
  app.use((request, response, next) => {
    const answer = called(application, (request as Limited).rateLimit)
    response.statusCode = application.status ?? 200
    if (typeof answer === 'string') response.end(answer)
    else answer.then((text) => response.end(text), next)
  })
  const onError: express.ErrorRequestHandler = (error, _request, response, _next) => {
    application.errors.push(error)
    response.status(500).end()
  }
  app.use(onError)
  return served(await listening(createServer(app)), limits)
}

async function serveFastify(options: readonly RateLimitOptions[], application: Application) {
  const app = fastify()
  app.addHook('onRequest', async (_request, reply) => application.onResponse?.(reply.raw))
  for (const option of options) app.register(fastifyLimit, option)
  app.all('*', (request, reply) => {
    reply.code(application.status ?? 200)
    return called(application, (request as Limited).rateLimit)
  })
  app.setErrorHandler((error, _request, reply) => {
    application.errors.push(error)
    reply.code(500).send()
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  return { server: app.server, closeLimits: () => app.close() }
}

async function serveKoa(options: readonly RateLimitOptions[], application: Application) {
  const app = new Koa({ env: 'test' })
  const limits = options.map((option) => koaLimit(option))
  app.use((context, next) => {
    application.onResponse?.(context.res)
    return next()
  })
  for (const limit of limits) app.use(limit)
  app.use(async (context) => {
    context.status = application.status ?? 200
    context.body = await called(application, context.state.rateLimit)
  })
  app.on('error', (error) => application.errors.push(error))
  return served(await listening(createServer(app.callback())), limits)
}

async function serveHonoApp(options: readonly RateLimitOptions[], application: Application) {
  const app = new Hono<{ Bindings: { outgoing: ServerResponse }; Variables: Limited }>()
  const limits = options.map((option) => honoLimit(option))
  app.use((context, next) => {
    application.onResponse?.(context.env.outgoing)
    return next()
  })
  for (const limit of limits) app.use(limit)
  app.all('*', async (context) =>
    context.text(await called(application, context.get('rateLimit')), (application.status ?? 200) as 200),
  )
  app.onError((error, context) => {
    application.errors.push(error)
    return context.body(null, 500)
  })
  return new Promise<Served>((resolve) => {
    const server = serveHono({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, () =>
      resolve(served(server as Server, limits)),
    )
  })
}

async function serveNest(options: readonly RateLimitOptions[], application: Application) {
  class Everything {
    answer(decision: Decision, response: { status(code: number): unknown }): string | Promise<string> {
      response.status(application.status ?? 200)
      return called(application, decision)
    }
  }
  RateLimitDecision()(Everything.prototype, 'answer', 0)
  Res({ passthrough: true })(Everything.prototype, 'answer', 1)
  const method = Object.getOwnPropertyDescriptor(Everything.prototype, 'answer') as PropertyDescriptor
  All('{*path}')(Everything.prototype, 'answer', method)
  Controller()(Everything)
  class Root {}
  Module({ imports: options.map((option) => RateLimitModule.forRoot(option)), controllers: [Everything] })(Root)
  class Listening extends BaseExceptionFilter {
    override catch(error: unknown, host: ArgumentsHost): void {
      if (!(error as { getStatus?: unknown }).getStatus) application.errors.push(error)
      super.catch(error, host)
    }
  }
  const app = await NestFactory.create(Root, { logger: false })
  app.use((_request: unknown, response: ServerResponse, next: () => void) => {
    application.onResponse?.(response)
    next()
  })
  app.useGlobalFilters(new Listening(app.get(HttpAdapterHost).httpAdapter))
  await app.listen(0, '127.0.0.1')
  const limits = options.map((_, index) => app.get(RateLimitGuard, { strict: false, each: true })[index])
  return served(app.getHttpServer(), limits as RateLimitGuard[])
}

async function serveNode(options: readonly RateLimitOptions[], application: Application) {
  const limits = options.map((option) => nodeLimit(option))
  const listener = async (request: IncomingMessage, response: ServerResponse) => {
    try {
      const text = await called(application, (request as Limited).rateLimit)
      response.writeHead(application.status ?? 200).end(text)
    } catch (error) {
      application.errors.push(error)
      response.writeHead(500).end()
    }
  }
  const limited = limits.reduceRight<typeof listener>((inner, limit) => limit(inner) as typeof listener, listener)
  const server = createServer((request, response) => {
    application.onResponse?.(response)
    limited(request, response)
  })
  return served(await listening(server), limits)
}

/** A minimal runtime for `fetch` handlers. */
async function serveFetch(options: readonly RateLimitOptions[], application: Application) {
  const limits = options.map((option) => fetchLimit(option as Parameters<typeof fetchLimit>[0]))
  type Handler = (request: Request, origin: { remoteAddress: string | undefined }) => Promise<Response>
  const limited = limits.reduceRight<Handler>(
    (inner, limit) => limit.wrap(inner),
    async () => new Response(await called(application), { status: application.status ?? 200 }),
  )
  const server = createServer(async (incoming, outgoing) => {
    application.onResponse?.(outgoing)
    const leaving = new AbortController()
    outgoing.once('close', () => leaving.abort())
    const response = await limited(requestOf(incoming, leaving.signal), {
      remoteAddress: incoming.socket.remoteAddress,
    }).catch((error) => {
      application.errors.push(error)
      return new Response(null, { status: 500 })
    })
    const body = Buffer.from(await response.arrayBuffer())
    if (outgoing.headersSent) return
    outgoing.writeHead(response.status, { ...Object.fromEntries(response.headers), 'content-length': body.length })
    outgoing.end(body)
  })
  return served(await listening(server), limits)
}

function requestOf(incoming: IncomingMessage, signal: AbortSignal): Request {
  const headers = new Headers(Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]))
  const hasBody = incoming.method !== 'GET' && incoming.method !== 'HEAD'
  return new Request(new URL(incoming.url ?? '/', 'http://localhost'), {
    method: incoming.method ?? 'GET',
    headers,
    signal,
    ...(hasBody && { body: Readable.toWeb(incoming) as ReadableStream, duplex: 'half' as const }),
  })
}

const express4: typeof express = createRequire(import.meta.url)('express4')

const nodeHeader = (request: { headers: IncomingHttpHeaders }, name: string): string | undefined =>
  request.headers[name] as string | undefined

const expressHooks: Pick<Adapter, 'header' | 'respond'> = {
  header: nodeHeader,
  respond: (response: express.Response, body) => response.send(body),
}

export const adapters: readonly Adapter[] = [
  { name: 'express 5', ...expressHooks, serve: (limits, application) => serveExpress(express, limits, application) },
  { name: 'express 4', ...expressHooks, serve: (limits, application) => serveExpress(express4, limits, application) },
  {
    name: 'fastify',
    header: nodeHeader,
    respond: (reply: FastifyReply, body) => reply.send(body),
    serve: serveFastify,
  },
  {
    name: 'koa',
    header: (context: Koa.Context, name) => context.get(name) || undefined,
    respond(context: Koa.Context, body) {
      context.body = body
    },
    serve: serveKoa,
  },
  {
    name: 'hono',
    header: (context: Context, name) => context.req.header(name),
    respond: (context: Context, body) => context.text(body),
    serve: serveHonoApp,
  },
  { name: 'nest', ...expressHooks, serve: serveNest },
  {
    name: 'node',
    header: nodeHeader,
    respond: (response: ServerResponse, body) => response.end(body),
    serve: serveNode,
  },
  {
    name: 'fetch',
    header: (request: Request, name) => request.headers.get(name) ?? undefined,
    respond: (response: Response, body) => new Response(body, { status: response.status }),
    serve: serveFetch,
  },
]
