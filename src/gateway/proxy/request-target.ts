import type { IncomingMessage } from 'node:http'
import type { ParseError } from '../../http/connections/parse-error.js'
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

/** The path, query and host of a request. */
export interface RequestTarget {
  /** The normalised path: matched, limited and, unless a filter rewrites it, forwarded. */
  readonly path: string
  /** The part after the question mark, or an empty string. */
  readonly query: string
  /** Name or address, with the port if the client sent one. */
  readonly host: string
}

/** Characters of names, addresses and ports. Excludes quotes and line breaks, because the host is written into headers. */
const hostForm = /^(?:[\w.~!$&'()*+,;=%-]*|\[[\da-fA-F:.]+\])(?::\d{0,5})?$/

/**
 * Parses the target of a request, or returns the response if the request is not forwarded. `node:http` has already rejected
 * malformed requests and ambiguous framing: two lengths, a length and chunks, folded lines, invalid chunks.
 */
export function parseTarget(request: IncomingMessage, limits: RequestLimits): RequestTarget | Answer {
  const { url = '', headers, httpVersion, rawHeaders } = request
  if (url.length > limits.maxUrlLength) return urlTooLong(limits)
  if (isTooLarge(rawHeaders, limits.maxHeaderSize)) return tooManyHeaders(limits)
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    return problemAnswer(505, 'The gateway supports HTTP/1.0 and HTTP/1.1. Send the request in one of them.')
  if (!isFramed(request)) return framingProblem(request)
  // In absolute form, the host of the URL takes precedence over the Host header (RFC 9112, 3.2.2).
  const [, authority, rest] = url.startsWith('/') ? [] : (/^https?:\/\/([^/?#]*)(.*)$/is.exec(url) ?? [])
  const isOptions = request.method === 'OPTIONS'
  const origin = url.startsWith('/') || (isOptions && url === '*') ? url : rest
  if (origin === undefined || url.includes('#')) return badRequest(targetForm)
  const host = authority ?? headers.host ?? ''
  const hosts = countHeader(rawHeaders, 'host')
  if (hosts > 1 || !hostForm.test(host) || !hostForm.test(headers.host ?? '')) return badRequest(hostRule)
  if (hosts === 0 && httpVersion === '1.1')
    return badRequest('Host is missing. Send one Host header, which HTTP/1.1 requires.')
  if (headers.expect !== undefined && !/100-continue/i.test(headers.expect))
    return problemAnswer(417, 'Expect must be 100-continue. Other expectations are not supported.')
  // OPTIONS with a URL without a path means the same as * (RFC 9112, 3.2.4).
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
  'The path has a dot segment and %2F, %5C or a semicolon, which servers resolve differently. Resolve the dot segment first.'

/**
 * False if the end of the request is uncertain, because its transfer coding is not exactly `chunked`. `node:http` ignores an
 * empty one. The rest of the connection must then not be parsed as requests.
 */
export function isFramed({ headers, httpVersion }: IncomingMessage): boolean {
  const coding = headers['transfer-encoding']
  return coding === undefined || (coding.toLowerCase() === 'chunked' && httpVersion !== '1.0')
}

function framingProblem({ headers, httpVersion }: IncomingMessage): Answer {
  const close = { Connection: 'close' }
  if (httpVersion === '1.0')
    return problemAnswer(400, 'HTTP/1.0 has no Transfer-Encoding. Send Content-Length, or use HTTP/1.1.', close)
  const isEmpty = /(?:^|,)\s*(?:,|$)/.test(headers['transfer-encoding'] ?? '')
  if (isEmpty) return problemAnswer(400, 'Transfer-Encoding is empty. Remove it, or send chunked.', close)
  return problemAnswer(501, 'Transfer-Encoding must be chunked. Other codings are not supported.', close)
}

const badRequest = (detail: string): Answer => problemAnswer(400, detail)

const tooManyHeaders = ({ maxHeaderSize }: Pick<RequestLimits, 'maxHeaderSize'>): Answer =>
  problemAnswer(431, `All headers together must not exceed ${maxHeaderSize} bytes.`)

function isTooLarge(rawHeaders: readonly string[], max: number): boolean {
  let size = 0
  for (let i = 0; i < rawHeaders.length; i++) size += (rawHeaders[i] as string).length + 2
  return size > max
}

function countHeader(rawHeaders: readonly string[], name: string): number {
  let count = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const found = rawHeaders[i] as string
    if (found.length === name.length && found.toLowerCase() === name) count += 1
  }
  return count
}

/** The response to a request that `node:http` could not parse: malformed, too large or too slow. */
export function parseErrorAnswer({ code, rawPacket }: ParseError, limits: RequestLimits): Answer {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return isUrlTooLong(rawPacket, limits) ? urlTooLong(limits) : tooManyHeaders(limits)
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return problemAnswer(408, 'The request did not arrive in time.')
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return problemAnswer(413, 'The chunk extensions are too long.')
    default:
      return badRequest('The HTTP request is malformed or ambiguous.')
  }
}

/** node:http limits URL and headers together. Its last packet shows which of them was too long. */
function isUrlTooLong(packet: Buffer | undefined, { maxUrlLength }: RequestLimits): boolean {
  const [, url = ''] = /^[A-Z-]{1,20} ([^ \r\n]*)/.exec(packet?.toString('latin1') ?? '') ?? []
  return url.length > maxUrlLength
}

const urlTooLong = ({ maxUrlLength }: RequestLimits): Answer =>
  problemAnswer(414, `The URL must not exceed ${maxUrlLength} characters.`)
