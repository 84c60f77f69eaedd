import { Agent, type ClientRequest, type IncomingMessage, type RequestOptions, request } from 'node:http'
import { Agent as TlsAgent, request as tlsRequest } from 'node:https'
import { setTimeout } from 'node:timers/promises'
import type { ConnectionOptions } from 'node:tls'
import type { Clock } from '../../core/clock.js'
import { FluxGateError, messageOf } from '../../core/errors.js'
import { type Deadline, Deadlines } from '../../core/scheduling/deadlines.js'
import { Hold } from '../../core/scheduling/hold.js'
import { invalid } from './check-options.js'

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

/** Between two attempts to reach a server that has not accepted a connection yet. */
const retryMs = 50
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
  readonly #connectTimeoutMs: number
  /** From the first call to the first connection. */
  #opening: Hold | undefined

  constructor({ url, token, timeoutMs, connectTimeoutMs, connections, tls, clock }: HttpCallerOptions) {
    const { protocol, hostname, host, port, pathname } = parseUrl(url)
    const isTls = protocol === 'https:'
    this.where = `${protocol}//${host}`
    this.#agent = isTls
      ? new TlsAgent({ ...tls, keepAlive: true, maxSockets: connections })
      : new Agent({ keepAlive: true, maxSockets: connections })
    this.#open = isTls ? tlsRequest : request
    this.#target = { method: 'POST', hostname: hostname.replace(/^\[(.*)\]$/, '$1'), port, agent: this.#agent }
    this.#base = pathname.replace(/\/+$/, '')
    this.#headers = {
      'content-type': 'application/json',
      accept: 'application/json',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    }
    this.#timeoutMs = timeoutMs
    this.#connectTimeoutMs = connectTimeoutMs
    this.#deadlines = new Deadlines(timeoutMs, clock)
  }

  /** Until the server has accepted a connection, the first call tries again and again, and all others wait for it. */
  async post(path: string, body: string): Promise<HttpAnswer> {
    if (this.#opening?.isOver) return this.#post(path, body)
    if (this.#opening !== undefined) {
      await this.#opening.over
      return this.#post(path, body)
    }
    const opening = new Hold(this.#connectTimeoutMs)
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

  /** The deadline begins when `opening` is over. */
  #post(path: string, body: string, opening?: Hold): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      const headers = { ...this.#headers, 'content-length': Buffer.byteLength(body) }
      let call: ClientRequest
      let isSent = false
      let isOver = false
      let deadline: Deadline | undefined
      const begin = (): void => {
        if (isOver) return
        deadline = this.#deadlines.begin(() => {
          isOver = true
          call.destroy()
          reject(isSent ? this.#late() : this.#unsent())
        })
      }
      /** False if the call had ended before. */
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
        call = this.#open({ ...this.#target, path: this.#base + path, headers })
        call.once('socket', (socket) => {
          isSent = true
          // A connection that is kept is connected already: a listener on it would never be called or removed.
          if (opening !== undefined) socket.once('connect', () => opening.end())
        })
        call.on('error', (error: NodeJS.ErrnoException) => {
          // The server closed an idle connection just before it was used again: another connection is used instead.
          if (call.reusedSocket && isClosedByPeer(error) && !isOver) send()
          else fail(error)
        })
        call.on('response', (response) => {
          readText(response, fail, (text) => {
            if (end()) resolve({ status: response.statusCode ?? 0, value: parsed(text) })
          })
        })
        call.end(body)
      }
      send()
      if (opening === undefined) begin()
      else void opening.over.then(begin)
    })
  }

  close(): void {
    this.#opening?.end()
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
