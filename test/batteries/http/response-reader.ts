/** Checks what one client received, response by response. */

import { type Journal, show } from '../journal.js'
import { bytesOf, endsConnection, type Plan } from '../plan.js'
import type { Received } from './conversation.js'
import { parseResponse, type RequestMessage, type ResponseMessage, valuesOf } from './http-parser.js'
import { idOf, requestOf } from './sent-stream.js'

/** The number of final responses at the start of `bytes`; stops at the first that is not complete. Infinite if no further one can follow. */
export function countFinals(bytes: Buffer, requests: readonly RequestMessage[]): number {
  let [count, from] = [0, 0]
  for (;;) {
    const parsed = parseResponse(bytes, requests[count]?.method ?? 'GET', false, from)
    if (parsed.kind === 'invalid') return Number.POSITIVE_INFINITY
    if (parsed.kind === 'incomplete') return count
    from = parsed.end
    if (parsed.message.status >= 200) count += 1
    else if (parsed.message.status === 101) return Number.POSITIVE_INFINITY
  }
}

type Asked = Pick<RequestMessage, 'method' | 'target' | 'version'> & Partial<RequestMessage>

export interface Expectation {
  /** Each request must get the response of its upstream, not one of the gateway. */
  readonly mustSucceed: boolean
}

/** The response that a strict recipient parses from the planned bytes of the upstream. */
function plannedResponse(plan: Plan, method: string): ReturnType<typeof parseResponse> | undefined {
  const bytes = bytesOf(plan)
  if (bytes === undefined) return undefined
  for (let from = 0; ; ) {
    const parsed = parseResponse(bytes, method, endsConnection(plan), from)
    if (parsed.kind !== 'complete' || parsed.message.status >= 200 || parsed.message.status === 101) return parsed
    from = parsed.end
  }
}

export class AnswerCheck {
  readonly #journal: Journal
  readonly #received: Received
  readonly #where: string
  readonly #mustSucceed: boolean

  constructor(journal: Journal, received: Received, where: string, { mustSucceed }: Expectation) {
    this.#journal = journal
    this.#received = received
    this.#where = where
    this.#mustSucceed = mustSucceed
  }

  run(): void {
    const { bytes, stream, hasLeft, isReset, isSilent, tunnelled } = this.#received
    if (isSilent) {
      this.#report('silence', 'neither a response nor the end of the connection before the deadline')
      return
    }
    const { requests, tail } = stream
    const partial = stream.partial === undefined ? undefined : requestOf(stream.partial)
    let from = 0
    let isClosed = false
    for (let index = 0; from < bytes.length; ) {
      const request = requests[index] ?? (index === requests.length ? partial : undefined)
      if (isClosed || (request === undefined && (tail === 'nothing' || index > requests.length))) {
        this.#report('unasked bytes', `${show(bytes.subarray(from))} after response ${index}`)
        return
      }
      const parsed = parseResponse(bytes, request?.method ?? 'GET', !isReset, from)
      if (parsed.kind === 'invalid') {
        this.#report('malformed response', `${parsed.reason} in ${show(bytes.subarray(from))}`)
        return
      }
      if (parsed.kind === 'incomplete') {
        if (!hasLeft && this.#planOf(request)?.isSound !== false)
          this.#report('truncated response', `${show(bytes.subarray(from))} to ${request?.target}`)
        return
      }
      from = parsed.end
      const { message } = parsed
      if (message.status < 200 && message.status !== 101) this.#checkInterim(message, request)
      else {
        if (message.status === 101) {
          const early = this.#received.sent.toString('latin1', stream.ends[index])
          this.#checkTunnel(message, request, bytes.subarray(from), early + tunnelled)
          return
        }
        this.#checkFinal(message, request)
        if (request === undefined && tail === 'invalid' && !message.closes)
          this.#report('kept connection', `${message.status} to a request without a certain end does not close`)
        isClosed = message.closes
        index += 1
        if (index === requests.length && !isClosed && tail === 'closed') isClosed = true
      }
      if (from >= bytes.length) this.#checkMissing(index, isClosed)
    }
    if (bytes.length === 0) this.#checkMissing(0, false)
  }

  #checkMissing(answered: number, isClosed: boolean): void {
    const { stream, hasLeft } = this.#received
    const next = stream.requests[answered]
    if (next === undefined || hasLeft || isClosed || !this.#mustSucceed) return
    this.#report(
      'missing response',
      `${next.method} ${next.target} got none, and the connection was closed without notice`,
    )
  }

  #checkInterim({ status }: ResponseMessage, request: Asked | undefined): void {
    if (request === undefined) this.#report('unasked bytes', `an interim response ${status} to no request`)
    else if (request.version === '1.0') this.#report('interim response to HTTP/1.0', `${status} to ${request.target}`)
  }

  #checkTunnel(message: ResponseMessage, request: Asked | undefined, rest: Buffer, tunnelled: string): void {
    const wanted =
      request?.headers !== undefined &&
      request.version !== '1.0' &&
      valuesOf({ headers: request.headers }, 'upgrade').length > 0
    if (!wanted) this.#report('unasked upgrade', `101 to ${request?.target}`)
    else if (valuesOf(message, 'x-id').join() !== idOf(request.target))
      this.#report('crossed answer', `101 of ${valuesOf(message, 'x-id').join()} to ${request.target}`)
    else if (!tunnelled.startsWith(rest.toString('latin1')))
      this.#report('changed tunnel', `${show(rest)} instead of ${show(Buffer.from(tunnelled, 'latin1'))}`)
  }

  #checkFinal(message: ResponseMessage, request: Asked | undefined): void {
    const ids = valuesOf(message, 'x-id')
    const line = `${message.status} to ${request?.method} ${request?.target}`
    if (request?.version === '1.0' && valuesOf(message, 'transfer-encoding').length > 0)
      this.#report('chunks to HTTP/1.0', line)
    if (ids.length === 0) this.#checkOwn(message, request, line)
    else if (request === undefined || ids.join() !== idOf(request.target))
      this.#report('crossed answer', `a response of ${ids.join()} was sent as ${line}`)
    else this.#checkRelayed(message, request, line)
  }

  /** A response that the gateway wrote by itself. */
  #checkOwn({ status, headers }: ResponseMessage, request: Asked | undefined, line: string): void {
    const isAbout = request?.method === 'OPTIONS' || request?.method === 'TRACE'
    if (status < 400 && !isAbout) this.#report('answer without an origin', `${line} ${JSON.stringify(headers)}`)
    else if (status === 500) this.#report('internal error', line)
    else if (this.#mustSucceed && request?.objection === undefined && request?.headers !== undefined)
      this.#report('rejected a valid request', line)
  }

  #checkRelayed(message: ResponseMessage, request: Asked, line: string): void {
    const plan = this.#planOf(request)
    const planned = plan && plannedResponse(plan, request.method)
    if (plan === undefined || planned === undefined) return
    if (planned.kind === 'complete') {
      const { status, body } = planned.message
      if (status !== message.status) this.#report('changed response', `${line}: the upstream sent ${status}`)
      if (!body.equals(message.body))
        this.#report('changed response', `${line}: ${show(message.body)} instead of ${show(body)}`)
    } else if (message.body.length > 0 && (planned.kind === 'incomplete' || planned.layer === 'framing')) {
      // A length on an interim response means nothing.
      const isInterim = planned.kind === 'invalid' && planned.reason.startsWith('a body with status 1')
      const detail = planned.kind === 'incomplete' ? 'ended early' : planned.reason
      if (!isInterim) this.#report('completed a broken response', `${line}: the upstream's response ${detail}`)
    }
  }

  #planOf(request: Asked | undefined): Plan | undefined {
    return request && this.#journal.planOf(request.target, request.method)
  }

  #report(kind: string, detail: string): void {
    this.#journal.report(kind, `${this.#where}: ${detail}\n    sent ${show(this.#received.sent)}`)
  }
}
