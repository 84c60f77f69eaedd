import { Agent, type ClientRequest, type IncomingMessage, type RequestOptions, request } from 'node:http'
import { Agent as TlsAgent, request as tlsRequest } from 'node:https'
import { setTimeout } from 'node:timers/promises'
import type { ConnectionOptions } from 'node:tls'
import type { Clock } from '../../core/clock.js'
import { FluxGateError, messageOf } from '../../core/errors.js'
import { ConnectionWait } from '../../core/scheduling/connection-wait.js'
import { type Deadline, Deadlines } from '../../core/scheduling/deadlines.js'
import { hiddenValue, wrongValue } from '../../validation/kind.js'
import { invalid } from './check-options.js'

export interface HttpClientOptions {
  /** The URL of the server, such as `http://127.0.0.1:8090`. Its path is prepended to the paths of the API. */
  readonly url: string
  /** The server's check token or admin token. */
  readonly token?: string | undefined
  readonly timeoutMs: number
  readonly connectTimeoutMs: number
  /** The maximum number of sockets. */
  readonly connections: number
  /** TLS options for `https://`, such as `ca`, `cert` and `key`. */
  readonly tls?: ConnectionOptions | undefined
  readonly clock: Clock
  /** Returns headers that continue the active trace. */
  readonly traceHeaders?: (() => Readonly<Record<string, string>> | undefined) | undefined
}

export interface HttpReply {
  readonly status: number
  /** The parsed JSON body; undefined if the body is not JSON. */
  readonly value: unknown
}

/** The pause between two attempts to open the first connection. */
const retryMs = 50
/** Larger than the reply to the largest batch. */
const maxReplyBytes = 16 * 2 ** 20

/** Posts JSON over keep-alive connections. Every call ends: with a response, or with an error when its deadline passes. */
export class HttpClient {
  /** The origin of the server for messages, without secrets. */
  readonly origin: string
  readonly #agent: Agent
  readonly #request: (options: RequestOptions) => ClientRequest
  readonly #target: RequestOptions
  readonly #base: string
  readonly #headers: Readonly<Record<string, string>>
  readonly #timeoutMs: number
  readonly #deadlines: Deadlines
  readonly #connectTimeoutMs: number
  readonly #traceHeaders: HttpClientOptions['traceHeaders']
  /** The wait for the first connection, from the first call on. */
  #opening: ConnectionWait | undefined

  constructor(options: HttpClientOptions) {
    const { url, token, timeoutMs, connectTimeoutMs, connections, tls, clock } = options
    const { protocol, hostname, host, port, pathname } = parseUrl(url)
    const isTls = protocol === 'https:'
    this.origin = `${protocol}//${host}`
    this.#agent = isTls
      ? new TlsAgent({ ...tls, keepAlive: true, maxSockets: connections })
      : new Agent({ keepAlive: true, maxSockets: connections })
    this.#request = isTls ? tlsRequest : request
    this.#target = { method: 'POST', hostname: hostname.replace(/^\[(.*)\]$/, '$1'), port, agent: this.#agent }
    this.#base = pathname.replace(/\/+$/, '')
    this.#headers = {
      'content-type': 'application/json',
      accept: 'application/json',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    }
    this.#timeoutMs = timeoutMs
    this.#connectTimeoutMs = connectTimeoutMs
    this.#traceHeaders = options.traceHeaders
    this.#deadlines = new Deadlines(timeoutMs, clock)
  }

  /** Until the server has accepted a connection, the first call is retried and all others wait for it. */
  async post(path: string, body: string): Promise<HttpReply> {
    if (this.#opening?.isOver) return this.#post(path, body)
    if (this.#opening !== undefined) {
      await this.#opening.over
      return this.#post(path, body)
    }
    const opening = new ConnectionWait(this.#connectTimeoutMs)
    this.#opening = opening
    for (;;) {
      try {
        return await this.#post(path, body, opening)
      } catch (error) {
        if (!opening.isOver) await setTimeout(retryMs)
        if (opening.isOver) throw error
      }
    }
  }

  /** The deadline starts when `opening` ends. */
  #post(path: string, body: string, opening?: ConnectionWait): Promise<HttpReply> {
    return new Promise((resolve, reject) => {
      const headers = { ...this.#headers, ...this.#traceHeaders?.(), 'content-length': Buffer.byteLength(body) }
      let call: ClientRequest
      let hasSocket = false
      let isOver = false
      let deadline: Deadline | undefined
      const startDeadline = (): void => {
        if (isOver) return
        deadline = this.#deadlines.begin(() => {
          isOver = true
          call.destroy()
          reject(hasSocket ? this.#timeout() : this.#noConnection())
        })
      }
      /** Returns false if the call has already ended. */
      const end = (): boolean => {
        const isFirst = !isOver
        isOver = true
        if (deadline !== undefined) this.#deadlines.end(deadline)
        return isFirst
      }
      const fail = (cause: unknown): void => {
        if (!end()) return
        call.destroy()
        reject(this.#failed(cause))
      }
      const send = (): void => {
        call = this.#request({ ...this.#target, path: this.#base + path, headers })
        call.once('socket', (socket) => {
          hasSocket = true
          // On a reused connection, the listener would never be called or removed.
          if (opening !== undefined) socket.once('connect', () => opening.end())
        })
        call.on('error', (error: NodeJS.ErrnoException) => {
          // The server closed the idle connection just before it was reused, so another connection is used.
          if (call.reusedSocket && isClosedByPeer(error) && !isOver) send()
          else fail(error)
        })
        call.on('response', (response) => {
          readText(response, fail, (text) => {
            if (end()) resolve({ status: response.statusCode ?? 0, value: parseJson(text) })
          })
        })
        call.end(body)
      }
      send()
      if (opening === undefined) startDeadline()
      else void opening.over.then(startDeadline)
    })
  }

  close(): void {
    this.#opening?.end()
    this.#agent.destroy()
  }

  #timeout(): FluxGateError {
    const message = `The server at ${this.origin} did not reply within ${this.#timeoutMs} ms.`
    return new FluxGateError('FLUXGATE_STORE_TIMEOUT', message)
  }

  /** All connections were busy for the whole time. */
  #noConnection(): FluxGateError {
    const message = `The call to the server at ${this.origin} was not sent: no connection was free within ${this.#timeoutMs} ms. Increase connections.`
    return new FluxGateError('FLUXGATE_STORE_UNREACHABLE', message)
  }

  #failed(cause: unknown): FluxGateError {
    const message = `The call to the server at ${this.origin} failed: ${messageOf(cause)}`
    return new FluxGateError('FLUXGATE_STORE_FAILED', message, { cause })
  }
}

const isClosedByPeer = ({ code }: NodeJS.ErrnoException): boolean => code === 'ECONNRESET' || code === 'EPIPE'

function readText(response: IncomingMessage, onError: (error: Error) => void, onEnd: (text: string) => void): void {
  let text = ''
  response.setEncoding('utf8')
  response.on('data', (chunk: string) => {
    text += chunk
    if (text.length > maxReplyBytes) onError(new Error(`the reply is longer than ${maxReplyBytes} bytes`))
  })
  response.on('error', onError)
  response.on('end', () => onEnd(text))
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function parseUrl(url: string | undefined): URL {
  if (url === undefined) throw invalid('url', wrongValue(url, 'http://host:port or https://host:port'))
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  const isPlain = parsed?.username === '' && parsed.password === '' && parsed.search === '' && parsed.hash === ''
  if (parsed !== undefined && isPlain && ['http:', 'https:'].includes(parsed.protocol)) return parsed
  const allowed = 'http://host:port or https://host:port, without credentials, query or fragment'
  throw invalid('url', `${hiddenValue(allowed)}. Pass the token as the option token`)
}
