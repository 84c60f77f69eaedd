// @ts-check
/** http-proxy behind express-rate-limit, with keep-alive connections. */
import { Agent, createServer } from 'node:http'
import express from 'express'
import { rateLimit } from 'express-rate-limit'
import httpProxy from 'http-proxy'
import { most, windowMs } from '../answer.mjs'
import { listen } from '../listen.mjs'

const agent = new Agent({ keepAlive: true, maxSockets: 256 })
const proxy = httpProxy.createProxyServer({ target: `http://127.0.0.1:${process.argv[2]}`, agent, xfwd: true })
const app = express()
app.use(rateLimit({ limit: most, windowMs, standardHeaders: 'draft-8' }))
app.use((request, response) => proxy.web(request, response))
listen(createServer(app))
