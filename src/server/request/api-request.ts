import type { IncomingMessage, ServerResponse } from 'node:http'
import { messageOf } from '../../core/errors.js'
import { jsonText } from '../../core/json/source-text.js'
import { withoutOrigin } from '../../core/matching/paths/normalise-path.js'
import { inSlices } from '../../core/scheduling/steps.js'
import { traceIdOf } from '../../core/tracing/trace-id.js'
import { problemMediaType } from '../../http/problem-document.js'
import type { ServerLog } from '../server-log.js'
import { ApiProblem, problemOf } from './api-problem.js'
import { parseBoundedJson, strictJsonSteps } from './bounded-json.js'
import { assertOwnHost, assertOwnOrigin } from './loopback.js'
import { parseQuery } from './query.js'
import { assertReadable, endAfterBody, hasLongBody, readBody } from './read-body.js'
import type { Call, Reply, Route } from './route.js'
import type { Router } from './router.js'
import { bearer, type TokenName, type Tokens } from './tokens.js'
import { assertValid } from './validator.js'

/** Dependencies shared by all requests to a server. */
export interface RequestParts {
  readonly router: Router
  readonly tokens: Tokens
  readonly log: ServerLog
  isDraining(): boolean
}

export const maxHeaders = 100
const noQuery = Object.freeze({})

/** Handles one request. Uses callbacks instead of promises, because most checks can be answered synchronously. */
export class ApiRequest {
  readonly #parts: RequestParts
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  /** True while the client waits for `100 Continue` before it sends its body. */
  #awaitsContinue: boolean
  #route: Route | undefined
  #params: Readonly<Record<string, string>> = noQuery
  #token: TokenName = 'none'
  #queryText = ''

  constructor(parts: RequestParts, request: IncomingMessage, response: ServerResponse, awaitsContinue: boolean) {
    this.#parts = parts
    this.#request = request
    this.#response = response
    this.#awaitsContinue = awaitsContinue
  }

  start(): void {
    try {
      const route = this.#authorizedRoute()
      if (route === undefined) return
      if (route.body === undefined) this.#run(route, undefined)
      else this.#read(route)
    } catch (error) {
      this.#fail(error)
    }
  }

  /**
   * Finds the route and authorizes the request, before any of the body is read. Returns undefined if the request was an
   * OPTIONS request, which is answered here.
   */
  #authorizedRoute(): Route | undefined {
    const { router, tokens } = this.#parts
    const { method = '', rawHeaders } = this.#request
    const url = withoutOrigin(this.#request.url ?? '') || '/'
    if (rawHeaders.length > 2 * maxHeaders) throw new ApiProblem('FLUXGATE_HEADERS_TOO_LARGE')
    if (tokens.isOpen) assertOwnHost(this.#request)
    assertOwnOrigin(this.#request)
    const question = url.indexOf('?')
    const path = question === -1 ? url : url.slice(0, question)
    if (question !== -1) this.#queryText = url.slice(question + 1)
    if (method === 'OPTIONS') {
      const allow = path === '*' ? 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS' : router.allowed(path)
      this.#send({ status: 204, headers: { Allow: allow } })
      return undefined
    }
    const { route, params } = router.find(method, path)
    this.#route = route
    this.#params = params
    this.#token = tokens.admit(this.#request, route.access)
    return route
  }

  #read(route: Route): void {
    const { headers } = this.#request
    const { 'content-length': length, 'transfer-encoding': coding } = headers
    if (route.isBodyOptional && coding === undefined && (length ?? '0') === '0') {
      this.#run(route, undefined)
      return
    }
    assertReadable(this.#request)
    if (this.#awaitsContinue) this.#response.writeContinue()
    this.#awaitsContinue = false
    readBody(this.#request, (error, bytes) => {
      try {
        if (error instanceof ApiProblem) throw error
        // The client disconnected while sending, so no response is possible.
        if (error !== undefined) return
        const body = bytes.length === 0 && route.isBodyOptional ? undefined : bodyOf(route, bytes)
        if (body instanceof Promise)
          body.then((read) => this.#run(route, read)).catch((problem: unknown) => this.#fail(problem))
        else this.#run(route, body)
      } catch (problem) {
        this.#fail(problem)
      }
    })
  }

  #run(route: Route, body: unknown): void {
    const call: Call = {
      params: this.#params,
      query: route.query === undefined ? noQuery : parseQuery(this.#queryText, route.query),
      body,
      headers: this.#request.headers,
      by: route.access === 'ADMIN' ? this.#by() : '',
    }
    const reply = route.handle(call)
    if (reply instanceof Promise)
      reply.then(
        (settled) => this.#send(settled),
        (error: unknown) => this.#fail(error),
      )
    else this.#send(reply)
  }

  #by(): string {
    const address = this.#request.socket.remoteAddress?.replace(/^::ffff:/, '') ?? 'unknown'
    return this.#token === 'none' ? address : `${this.#token}@${address}`
  }

  #fail(error: unknown): void {
    const problem = problemOf(error)
    if (problem.status >= 500 && !(error instanceof ApiProblem)) this.#logFailure(problem.status, error)
    const page = problem.status === 401 ? this.#signInPage() : undefined
    if (page !== undefined) {
      this.#send(page)
      return
    }
    const headers = { 'Content-Type': problemMediaType, ...(error instanceof ApiProblem && error.headers) }
    this.#send({ status: problem.status, headers, json: problem })
  }

  /** Has no Basic challenge, because a browser would then ask for a password instead of showing the page. */
  #signInPage(): Reply | undefined {
    const { headers } = this.#request
    if (!headers.accept?.includes('text/html')) return undefined
    const page = this.#route?.signIn?.(headers)
    return page && { ...page, headers: { ...page.headers, 'WWW-Authenticate': bearer } }
  }

  #logFailure(status: number, error: unknown): void {
    const fields = {
      status,
      method: this.#request.method,
      route: this.#route?.path,
      error: messageOf(error),
      traceId: traceIdOf(this.#request.headers),
      ...(status === 500 && error instanceof Error && { stack: error.stack }),
    }
    this.#parts.log.error('request failed', fields)
  }

  #send({ status, headers, json, text, chunks, stream }: Reply): void {
    const response = this.#response
    // The client disconnected, or the response was sent already.
    if (response.headersSent || response.destroyed) return
    if (stream !== undefined && this.#request.method !== 'HEAD') {
      stream(response)
      return
    }
    const body = text ?? chunks?.at(-1) ?? (json === undefined ? undefined : jsonText(json))
    const lines: string[] = []
    if (json !== undefined && headers?.['Content-Type'] === undefined) lines.push('Content-Type', 'application/json')
    if (headers !== undefined) for (const name in headers) lines.push(name, headers[name] as string)
    if (this.#request.method !== 'POST') {
      lines.push('X-Content-Type-Options', 'nosniff')
      if (headers?.['Cache-Control'] === undefined) lines.push('Cache-Control', 'no-store')
    }
    const size = chunks === undefined ? (body === undefined ? 0 : Buffer.byteLength(body)) : sizeOf(chunks)
    if (body !== undefined || (status !== 204 && status !== 304)) lines.push('Content-Length', String(size))
    const isLong = hasLongBody(this.#request)
    // Without `100 Continue` the client may or may not send the body, so the start of the next request is unknown.
    if (isLong || this.#awaitsContinue || this.#parts.isDraining()) lines.push('Connection', 'close')
    response.writeHead(status, lines)
    if (chunks !== undefined) for (const chunk of chunks.slice(0, -1)) response.write(chunk)
    if (isLong) endAfterBody(this.#request, response, body)
    else if (typeof body === 'string') response.end(body, size === body.length ? 'latin1' : 'utf8')
    else response.end(body)
  }
}

const sizeOf = (chunks: readonly Buffer[]): number => chunks.reduce((size, { length }) => size + length, 0)

/** Returns a promise only for large rule documents, which are parsed in slices. */
function bodyOf(route: Route, bytes: Buffer): unknown {
  if (route.isCheckedByStore) return inSlices(strictJsonSteps(bytes))
  const body = parseBoundedJson(bytes)
  if (route.body !== undefined) assertValid(route.body, body, 'body')
  return body
}
