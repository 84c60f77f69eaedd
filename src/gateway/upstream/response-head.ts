/** What comes before the body of a response. */
export interface ResponseHead {
  readonly status: number
  readonly reason: string
  /** Name, value, name, value, as they were sent. */
  readonly headers: readonly string[]
  /** The names alone, in lower case. */
  readonly names: readonly string[]
  readonly framing: Framing
  /** Whether the connection may be used again. */
  readonly isKeptAlive: boolean
}

/** How the end of the body is found. A length of 0 is no body. */
export type Framing = number | 'CHUNKED' | 'UNTIL_CLOSE'

/** The upstream does not speak HTTP/1.1, or not so that everybody would read it the same way. */
export class BadResponse extends Error {
  override readonly name = 'BadResponse'
}

/** `text` is everything before the empty line, in latin1. */
export function parseResponseHead(text: string, method: string): ResponseHead {
  const lineEnd = endOfLine(text, 0)
  const [, minor, code = '', reason = ''] = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: (.*))?$/.exec(text.slice(0, lineEnd)) ?? []
  if (minor === undefined) throw new BadResponse('its status line is not HTTP/1.1')
  const status = Number(code)
  const headers: string[] = []
  const names: string[] = []
  let length: string | undefined
  let coding: string | undefined
  let connection = ''
  for (let at = lineEnd + 2; at < text.length; ) {
    const end = endOfLine(text, at)
    const colon = text.indexOf(':', at)
    if (colon <= at || colon > end) throw new BadResponse('a header line has no name')
    const name = text.slice(at, colon)
    const value = text.slice(colon + 1, end).trim()
    const lower = name.toLowerCase()
    headers.push(name, value)
    names.push(lower)
    if (lower === 'content-length') {
      if (length !== undefined && length !== value) throw new BadResponse('it has two lengths')
      length = value
    } else if (lower === 'transfer-encoding') coding = coding === undefined ? value : `${coding}, ${value}`
    else if (lower === 'connection') connection += `,${value.toLowerCase()}`
    at = end + 2
  }
  const isModern = minor === '1'
  const framing = framingOf(status, method, length, coding)
  return {
    status,
    reason,
    headers,
    names,
    framing,
    isKeptAlive:
      framing !== 'UNTIL_CLOSE' && (isModern ? !has(connection, 'close') : has(connection, 'keep-alive') && !coding),
  }
}

const has = (connection: string, option: string): boolean =>
  connection !== '' && connection.split(',').some((one) => one.trim() === option)

function endOfLine(text: string, from: number): number {
  const end = text.indexOf('\r\n', from)
  return end === -1 ? text.length : end
}

/** RFC 9112, 6.3, without its leniency: what two readers could understand differently is refused. */
function framingOf(status: number, method: string, length: string | undefined, coding: string | undefined): Framing {
  if (coding !== undefined && length !== undefined) throw new BadResponse('it has both a length and a transfer coding')
  if (coding !== undefined && coding.toLowerCase() !== 'chunked')
    throw new BadResponse('its transfer coding is not chunked')
  if (length !== undefined && !/^\d{1,15}$/.test(length)) throw new BadResponse('its length is not a number')
  if (method === 'HEAD' || status < 200 || status === 204 || status === 304) return 0
  if (coding !== undefined) return 'CHUNKED'
  return length === undefined ? 'UNTIL_CLOSE' : Number(length)
}

/** Trailers of a chunked body, as a flat list like headers. */
export function parseTrailers(text: string): string[] {
  const trailers: string[] = []
  for (const line of text.split('\r\n')) {
    if (line === '') continue
    const colon = line.indexOf(':')
    if (colon <= 0) throw new BadResponse('a trailer has no name')
    trailers.push(line.slice(0, colon), line.slice(colon + 1).trim())
  }
  return trailers
}
