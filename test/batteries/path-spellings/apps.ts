/** One application per framework with a limited route. `X-Protected` says that its handler ran. */
import { createServer, type RequestListener, type Server } from 'node:http'
import { createRequire } from 'node:module'
import { serve as serveHono } from '@hono/node-server'
import { Controller, Get, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { rateLimit as expressLimit } from '../../../src/middleware/express.js'
import { rateLimit as fastifyLimit } from '../../../src/middleware/fastify.js'
import { rateLimit as fetchLimit } from '../../../src/middleware/fetch.js'
import { rateLimit as honoLimit } from '../../../src/middleware/hono.js'
import { rateLimit as koaLimit } from '../../../src/middleware/koa.js'
import { RateLimitModule } from '../../../src/middleware/nest.js'
import { rateLimit as nodeLimit } from '../../../src/middleware/node.js'
import 'reflect-metadata'
import { protectedPath } from './spellings.js'

const limit = { path: protectedPath, method: 'GET', capacity: 1_000_000, window: '1h' } as const
const express4: typeof express = createRequire(import.meta.url)('express4')

const listening = async (listener: RequestListener): Promise<Server> => {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

/** A router of its own, as many applications have one: `new URL`, then segments decoded one by one. */
function isProtected(url: string, base: string): boolean {
  try {
    const segments = new URL(url, base).pathname.split('/').filter((segment) => segment !== '')
    const decoded = segments.map((segment) => decodeURIComponent(segment).toLowerCase())
    return JSON.stringify(['', ...decoded]) === JSON.stringify(protectedPath.split('/'))
  } catch {
    return false
  }
}

const plain = (listener: (url: string) => boolean): RequestListener =>
  nodeLimit(limit)((request, response) => {
    if (listener(request.url ?? '')) response.setHeader('X-Protected', 'yes')
    response.end('ok')
  })

async function nestServer(): Promise<Server> {
  class Login {
    login(_request: unknown, response: { set(name: string, value: string): { end(): void } }): void {
      response.set('X-Protected', 'yes').end()
    }
  }
  const { Req, Res } = await import('@nestjs/common')
  Req()(Login.prototype, 'login', 0)
  Res()(Login.prototype, 'login', 1)
  Get(protectedPath)(
    Login.prototype,
    'login',
    Object.getOwnPropertyDescriptor(Login.prototype, 'login') as PropertyDescriptor,
  )
  Controller()(Login)
  class Root {}
  Module({ imports: [RateLimitModule.forRoot(limit)], controllers: [Login] })(Root)
  const app = await NestFactory.create(Root, { logger: false })
  await app.listen(0, '127.0.0.1')
  return app.getHttpServer()
}

function expressServer(make: typeof express): Promise<Server> {
  const app = make()
  app.use(expressLimit(limit))
  app.get(protectedPath, (_request, response) => {
    response.set('X-Protected', 'yes').end('ok')
  })
  return listening(app)
}

async function fastifyServer(isLenient: boolean): Promise<Server> {
  const router = {
    caseSensitive: false,
    ignoreTrailingSlash: true,
    ignoreDuplicateSlashes: true,
    useSemicolonDelimiter: true,
  }
  const app = fastify(isLenient ? { routerOptions: router } : {})
  await app.register(fastifyLimit, limit)
  app.get(protectedPath, (_request, reply) => reply.header('X-Protected', 'yes').send('ok'))
  await app.listen({ port: 0, host: '127.0.0.1' })
  return app.server
}

function koaServer(): Promise<Server> {
  const app = new Koa({ env: 'test' })
  app.silent = true
  app.use(koaLimit(limit))
  app.use((context) => {
    if (isProtected(context.path.replace(/^\/{2,}/, '/'), 'http://a')) context.set('X-Protected', 'yes')
    context.body = 'ok'
  })
  return listening(app.callback())
}

function honoServer(): Promise<Server> {
  const app = new Hono()
  app.use(honoLimit(limit))
  app.get(protectedPath, (context) => context.text('ok', 200, { 'X-Protected': 'yes' }))
  return new Promise((resolve) => {
    const server = serveHono({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, () => resolve(server as Server))
  })
}

function fetchServer(): Promise<Server> {
  const limited = fetchLimit(limit).wrap(async (request: Request, _origin: { remoteAddress: string }) => {
    const headers = isProtected(request.url, 'http://a') ? { 'X-Protected': 'yes' } : undefined
    return new Response('ok', headers && { headers })
  })
  return listening(async (incoming, outgoing) => {
    const base = `http://${incoming.headers.host}`
    const { url = '/', method = 'GET' } = incoming
    // Request accepts no credentials.
    if (!URL.canParse(url, base) || new URL(url, base).username !== '') {
      outgoing.writeHead(400).end()
      return
    }
    const response = await limited(new Request(new URL(url, base), { method }), { remoteAddress: '127.0.0.1' })
    outgoing.writeHead(response.status, Object.fromEntries(response.headers)).end()
  })
}

export const spellingApps: readonly (readonly [name: string, start: () => Promise<Server>])[] = [
  ['Express 5', () => expressServer(express)],
  ['Express 4', () => expressServer(express4)],
  ['Fastify', () => fastifyServer(false)],
  ['Fastify with a lenient router', () => fastifyServer(true)],
  ['Koa with a path comparison', koaServer],
  ['Hono', honoServer],
  ['Nest', nestServer],
  ['node:http with new URL', () => listening(plain((url) => isProtected(url, 'http://a')))],
  ['fetch with new URL', fetchServer],
]
