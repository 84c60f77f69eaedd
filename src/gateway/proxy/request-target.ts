import type { IncomingMessage } from 'node:http'
import type { Answer } from '../../http/connections/raw-answer.js'
import { forwardedPath, hasHiddenDots } from '../headers/forwarded-path.js'
import { forwardsLeft, lastHopAnswer, optionsAnswer } from '../headers/max-forwards.js'
import { problemAnswer } from './gateway-problem.js'

export interface RequestLimits {
  /** Bytes of the path and query. */
  readonly maxUrlLength: number
  /** Bytes of all headers. */
  readonly maxHeaderSize: number
}

/** What a request asks for. */
export interface Target {
  /** As it is matched, counted and, unless a filter rewrites it, forwarded. */
  readonly path: string
  /** Behind the question mark; empty if there is none. */
  readonly query: string
  /** As it was asked for, with a port if one was given. */
  readonly host: string
}

/** Letters, digits and what else a name, an address or a port may have; never what could end a quotation or a line. */
const hostForm = /^(?:[\w.~!$&'()*+,;=%-]*|\[[\da-fA-F:.]+\])(?::\d{0,5})?$/

/**
 * The target of the request; or the answer, if it is not forwarded. `node:http` has already rejected what is not HTTP, and what
 * two servers could frame differently: two lengths, a length beside chunks, folded lines, bad chunks.
 */
export function readTarget(request: IncomingMessage, limits: RequestLimits): Target | Answer {
  const { url = '', headers, httpVersion, rawHeaders } = request
  if (url.length > limits.maxUrlLength) return problemAnswer(414, `A URL may have ${limits.maxUrlLength} characters.`)
  if (isTooLarge(rawHeaders, limits.maxHeaderSize)) return tooManyHeaders(limits)
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return problemAnswer(505, 'This gateway speaks HTTP/1.1.')
  if (!isFramed(request)) return unframed(request)
  // A client of a proxy writes the whole URL, and its host counts instead of the header's.
  const [, authority, rest] = url.startsWith('/') ? [] : (/^https?:\/\/([^/?#]*)(.*)$/is.exec(url) ?? [])
  const isOptions = request.method === 'OPTIONS'
  const origin = url.startsWith('/') || (isOptions && url === '*') ? url : rest
  if (origin === undefined || url.includes('#')) return badRequest(targetForm)
  const host = authority ?? headers.host ?? ''
  const hosts = countOf(rawHeaders, 'host')
  if (hosts > 1 || !hostForm.test(host) || !hostForm.test(headers.host ?? '')) return badRequest(hostRule)
  if (hosts === 0 && httpVersion === '1.1')
    return badRequest('Host is missing. Send one Host header, which HTTP/1.1 requires.')
  if (headers.expect !== undefined && !/100-continue/i.test(headers.expect))
    return problemAnswer(417, 'The only expectation is 100-continue.')
  // RFC 9112: a URL without a path means the same as *.
  if (isOptions && (origin === '*' || origin === '')) return optionsAnswer()
  if (forwardsLeft(request) === 0) return lastHopAnswer(request)
  const question = origin.indexOf('?')
  const path = forwardedPath((question === -1 ? origin : origin.slice(0, question)) || '/')
  if (path.includes('%00')) return badRequest('The path must not contain %00. Remove it.')
  if (hasHiddenDots(path)) return badRequest(hiddenDots)
  return { path, query: question === -1 ? '' : origin.slice(question + 1), host }
}

const targetForm =
  'The request target must be a path such as /users?page=2, or an http or https URL. Send it without a fragment (#).'
const hostRule = 'Host must be one name or address, with an optional port. Send exactly one Host header in this form.'
const hiddenDots =
  'The path has a dot segment beside %2F, %5C or a semicolon, which servers resolve differently. Resolve it before sending.'

/**
 * False if the end of the request is uncertain, because its transfer coding is not exactly `chunked`. `node:http` takes
 * an empty one for none. Nothing that follows on the connection may be read as a request then.
 */
export function isFramed({ headers, httpVersion }: IncomingMessage): boolean {
  const coding = headers['transfer-encoding']
  return coding === undefined || (coding.toLowerCase() === 'chunked' && httpVersion !== '1.0')
}

function unframed({ headers, httpVersion }: IncomingMessage): Answer {
  const close = { Connection: 'close' }
  if (httpVersion === '1.0')
    return problemAnswer(400, 'HTTP/1.0 has no Transfer-Encoding. Send Content-Length, or use HTTP/1.1.', close)
  const isEmpty = /(?:^|,)\s*(?:,|$)/.test(headers['transfer-encoding'] ?? '')
  if (isEmpty) return problemAnswer(400, 'Transfer-Encoding is empty. Remove it, or send chunked.', close)
  return problemAnswer(501, 'Transfer-Encoding must be chunked. Other codings are not supported.', close)
}

export const badRequest = (detail: string): Answer => problemAnswer(400, detail)

export const tooManyHeaders = ({ maxHeaderSize }: Pick<RequestLimits, 'maxHeaderSize'>): Answer =>
  problemAnswer(431, `All headers together may have ${maxHeaderSize} bytes.`)

function isTooLarge(rawHeaders: readonly string[], max: number): boolean {
  let size = 0
  for (let i = 0; i < rawHeaders.length; i++) size += (rawHeaders[i] as string).length + 2
  return size > max
}

function countOf(rawHeaders: readonly string[], name: string): number {
  let count = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const found = rawHeaders[i] as string
    if (found.length === name.length && found.toLowerCase() === name) count += 1
  }
  return count
}
