import { Agent, type ClientRequest, type IncomingMessage, type RequestOptions, request } from 'node:http'
import { Agent as TlsAgent, request as tlsRequest } from 'node:https'
import type { ConnectionOptions } from 'node:tls'
import type { Clock } from '../core/clock.js'
import { Deadlines } from '../core/deadlines.js'
import { FluxGateError, messageOf } from '../core/errors.js'
import { invalid } from './check-http-options.js'
import { HttpOpening } from './http-opening.js'

export interface HttpCallerOptions {
  /** Where the server is, such as `http://127.0.0.1:8090`; a path in it stands before those of the server. */
  readonly url: string
  /** The server's admin or check token. */
  readonly token?: string | undefined
  readonly timeoutMs: number
  readonly connectTimeoutMs: number
  /** How many sockets are open at most. */
  readonly connections: number
  /** For `https://`: another authority to trust, a certificate to show. */
  readonly tls?: ConnectionOptions | undefined
  readonly clock: Clock
}

export interface HttpAnswer {
  readonly status: number
  /** What its JSON says; `undefined` if it is none. */
  readonly value: unknown
}

/** More than the answer to the largest batch. */
const maxAnswerBytes = 16 * 2 ** 20

/** Posts JSON over keep-alive connections. Every call ends: with a response, or with an error when its deadline passes. */
export class HttpCaller {
  /** Without anything secret. */
  readonly where: string
  readonly #agent: Agent
  readonly #open: (options: RequestOptions) => ClientRequest
  readonly #target: RequestOptions
  readonly #base: string
  readonly #headers: Readonly<Record<string, string>>
  readonly #timeoutMs: number
  readonly #deadlines: Deadlines
  readonly #opening: HttpOpening

  constructor({ url, token, timeoutMs, connectTimeoutMs, connections, tls, clock }: HttpCallerOptions) {
    const { protocol, hostname, host, port, pathname } = parseUrl(url)
    const isTls = protocol === 'https:'
    this.where = `${protocol}//${host}`
    this.#agent = isTls
      ? new TlsAgent({ ...tls, keepAlive: true, maxSockets: connections })
      : new Agent({ keepAlive: true, maxSockets: connections })
    this.#open = isTls ? tlsRequest : request
    const name = hostname.replace(/^\[(.*)\]$/, '$1')
    this.#target = { method: 'POST', hostname: name, port, agent: this.#agent }
    this.#opening = new HttpOpening({
      host: name,
      port: port === '' ? (isTls ? 443 : 80) : Number(port),
      tls: isTls ? (tls ?? {}) : undefined,
      connectTimeoutMs,
    })
    this.#base = pathname.replace(/\/+$/, '')
    this.#headers = {
      'content-type': 'application/json',
      accept: 'application/json',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    }
    this.#timeoutMs = timeoutMs
    this.#deadlines = new Deadlines(timeoutMs, clock)
  }

  /** Waits for the server's first connection, then sends. */
  post(path: string, body: string): Promise<HttpAnswer> {
    return this.#opening.isOver ? this.#post(path, body) : this.#opening.over().then(() => this.#post(path, body))
  }

  #post(path: string, body: string): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      const headers = { ...this.#headers, 'content-length': Buffer.byteLength(body) }
      let call: ClientRequest
      let isSent = false
      const deadline = this.#deadlines.begin(() => {
        call.destroy()
        reject(isSent ? this.#late() : this.#unsent())
      })
      const fail = (cause: unknown): void => {
        if (!this.#deadlines.end(deadline)) return
        call.destroy()
        reject(this.#failed(cause))
      }
      const send = (): void => {
        call = this.#open({ ...this.#target, path: this.#base + path, headers })
        call.once('socket', () => {
          isSent = true
        })
        call.on('error', (error: NodeJS.ErrnoException) => {
          // The server closed an idle connection just before it was used again: another connection is used instead.
          if (call.reusedSocket && isClosedByPeer(error) && deadline.isPending) send()
          else fail(error)
        })
        call.on('response', (response) => {
          readText(response, fail, (text) => {
            if (this.#deadlines.end(deadline)) resolve({ status: response.statusCode ?? 0, value: parsed(text) })
          })
        })
        call.end(body)
      }
      send()
    })
  }

  close(): void {
    this.#opening.end()
    this.#agent.destroy()
  }

  #late(): FluxGateError {
    const message = `The server at ${this.where} had not answered after ${this.#timeoutMs} ms.`
    return new FluxGateError('FLUXGATE_STORE_TIMEOUT', message)
  }

  /** All connections were busy for the whole time. */
  #unsent(): FluxGateError {
    const message = `The server at ${this.where} could not be asked: no connection was free within ${this.#timeoutMs} ms. Raise connections.`
    return new FluxGateError('FLUXGATE_STORE_UNREACHABLE', message)
  }

  #failed(cause: unknown): FluxGateError {
    const message = `The server at ${this.where} could not be asked: ${messageOf(cause)}`
    return new FluxGateError('FLUXGATE_STORE_FAILED', message, { cause })
  }
}

const isClosedByPeer = ({ code }: NodeJS.ErrnoException): boolean => code === 'ECONNRESET' || code === 'EPIPE'

function readText(response: IncomingMessage, onError: (error: Error) => void, onEnd: (text: string) => void): void {
  let text = ''
  response.setEncoding('utf8')
  response.on('data', (piece: string) => {
    text += piece
    if (text.length > maxAnswerBytes) onError(new Error('the answer is too long'))
  })
  response.on('error', onError)
  response.on('end', () => onEnd(text))
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function parseUrl(url: string): URL {
  const found = URL.canParse(url) ? new URL(url) : undefined
  const isPlain = found?.username === '' && found.password === '' && found.search === '' && found.hash === ''
  if (found !== undefined && isPlain && ['http:', 'https:'].includes(found.protocol)) return found
  // Not shown: it may hold a password.
  throw invalid(
    'url: found something else; allowed: http://host:port or https://host:port, and the token apart from it.',
  )
}
