/**
 * A strict parser for HTTP/1.1 messages (RFC 9112). It shares no code with node:http or undici, and it accepts only
 * messages that every recipient understands alike, so that it can judge both sides of a proxy.
 */

export type Field = readonly [name: string, value: string]

export interface Message {
  readonly version: '1.0' | '1.1'
  readonly headers: readonly Field[]
  readonly body: Buffer
  readonly trailers: readonly Field[]
  /** True if no further message may follow on the connection. */
  readonly closes: boolean
}

export interface RequestMessage extends Message {
  readonly method: string
  readonly target: string
  /** Why a recipient must reject the request, although its end is certain. */
  readonly objection: string | undefined
}

export interface ResponseMessage extends Message {
  readonly status: number
  readonly reason: string
}

/**
 * `incomplete`: more bytes are needed; `startLine` is set once the head is complete. `invalid`: `layer` is `framing` if the end of the message is in doubt, `syntax`
 * otherwise.
 */
export type Parsed<M> =
  | { readonly kind: 'complete'; readonly message: M; readonly end: number }
  | { readonly kind: 'incomplete'; readonly startLine: string | undefined }
  | { readonly kind: 'invalid'; readonly layer: 'syntax' | 'framing'; readonly reason: string }

interface Head {
  readonly line: string
  readonly headers: readonly Field[]
  readonly end: number
}

/** Where a body ends: after a number of bytes, after its last chunk, or with the connection. */
type Framing = number | 'chunked' | 'close'

class Invalid extends Error {
  readonly layer: 'syntax' | 'framing'

  constructor(layer: 'syntax' | 'framing', reason: string) {
    super(reason)
    this.layer = layer
  }
}

class Incomplete extends Error {}

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/
const hostForm = /^(?:[A-Za-z0-9._~!$&'()*+,;=%-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?$/
const requestLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([\x21-\x7e]+) HTTP\/(1\.[01])$/
const statusLine = /^HTTP\/(1\.[01]) ([1-9][0-9]{2}) ([\t\x20-\x7e\x80-\xff]*)$/
const chunkLine =
  /^([0-9A-Fa-f]{1,12})(?:;[!#$%&'*+.^_`|~0-9A-Za-z-]+(?:=(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+|"[^"\\]*"))?)*$/

/** The values of one header, in their order. */
export const valuesOf = ({ headers }: Pick<Message, 'headers'>, name: string): string[] =>
  headers.filter(([found]) => found.toLowerCase() === name).map(([, value]) => value)

const listOf = (message: Pick<Message, 'headers'>, name: string): string[] =>
  valuesOf(message, name).flatMap((value) => value.split(',').map((item) => item.trim().toLowerCase()))

/** Parses the request that begins at `start`. */
export function parseRequest(bytes: Buffer, start = 0): Parsed<RequestMessage> {
  return attempt(() => {
    let from = start
    // An empty line before a request is ignored (RFC 9112, section 2.2).
    while (bytes[from] === 13 && bytes[from + 1] === 10) from += 2
    const head = readHead(bytes, from, (line) => {
      if (!requestLine.test(line)) throw new Invalid('syntax', `request line ${JSON.stringify(line.slice(0, 80))}`)
    })
    const [, method = '', target = '', version] = requestLine.exec(head.line) as RegExpExecArray
    const objection = hostObjection(head, version === '1.1')
    const framing = requestFraming(head, version === '1.0')
    const { body, trailers, end } = readBody(bytes, head, framing, false)
    const options = listOf(head, 'connection')
    const closes = options.includes('close') || (version === '1.0' && !options.includes('keep-alive'))
    const { headers } = head
    const message = { method, target, objection, version: version as '1.0' | '1.1', headers, body, trailers, closes }
    return { kind: 'complete', message, end }
  })
}

/**
 * Parses the response that begins at `start`, to a request with `method`. `ended` says that the sender has closed, which
 * completes a body without a length.
 */
export function parseResponse(bytes: Buffer, method: string, ended: boolean, start = 0): Parsed<ResponseMessage> {
  return attempt(() => {
    const head = readHead(bytes, start, (line) => {
      if (!statusLine.test(line)) throw new Invalid('syntax', `status line ${JSON.stringify(line.slice(0, 80))}`)
    })
    const [, version, digits = '', reason = ''] = statusLine.exec(head.line) as RegExpExecArray
    const status = Number(digits)
    const framing = responseFraming(head, method, status)
    const { body, trailers, end } = readBody(bytes, head, framing, ended)
    const options = listOf(head, 'connection')
    const closes =
      framing === 'close' || options.includes('close') || (version === '1.0' && !options.includes('keep-alive'))
    const message = { status, reason, version: version as '1.0' | '1.1', headers: head.headers, body, trailers, closes }
    return { kind: 'complete', message, end }
  })
}

function attempt<M>(parse: () => Parsed<M>): Parsed<M> {
  try {
    return parse()
  } catch (error) {
    if (error instanceof Incomplete) return { kind: 'incomplete', startLine: error.message || undefined }
    if (error instanceof Invalid) return { kind: 'invalid', layer: error.layer, reason: error.message }
    throw error
  }
}

/** A line without its CRLF, and the offset behind it. */
function readLine(bytes: Buffer, start: number, startLine: string): [line: string, end: number] {
  const feed = bytes.indexOf(10, start)
  const line = bytes.toString('latin1', start, feed === -1 ? bytes.length : feed)
  const carriage = line.indexOf('\r')
  if (feed === -1) {
    if (carriage !== -1 && carriage < line.length - 1) throw new Invalid('syntax', 'bare CR')
    throw new Incomplete(startLine)
  }
  if (carriage !== line.length - 1 || carriage === -1)
    throw new Invalid('syntax', 'a line without exactly one CR before LF')
  return [line.slice(0, -1), feed + 1]
}

/** Start line and headers. The start line is checked before the rest has arrived. */
function readHead(bytes: Buffer, start: number, checkLine: (line: string) => void): Head {
  const [line, end] = readLine(bytes, start, '')
  checkLine(line)
  const fields = readFields(bytes, end, '')
  return { line, headers: fields.headers, end: fields.end }
}

function readFields(bytes: Buffer, start: number, startLine: string): { headers: Field[]; end: number } {
  const headers: Field[] = []
  for (let from = start; ; ) {
    const [line, end] = readLine(bytes, from, startLine)
    if (line === '') return { headers, end }
    const colon = line.indexOf(':')
    const name = line.slice(0, Math.max(0, colon))
    if (/^[\t ]/.test(line)) throw new Invalid('syntax', 'a folded line')
    if (!token.test(name)) throw new Invalid('syntax', `header name ${JSON.stringify(line.slice(0, 80))}`)
    const value = line
      .slice(colon + 1)
      .replace(/^[\t ]+/, '')
      .replace(/[\t ]+$/, '')
    if (!fieldValue.test(value)) throw new Invalid('syntax', `value of ${name}: ${JSON.stringify(value.slice(0, 80))}`)
    headers.push([name, value])
    from = end
  }
}

function hostObjection(head: Head, isRequired: boolean): string | undefined {
  const [host, ...others] = valuesOf(head, 'host')
  if (others.length > 0) return 'two Host headers'
  if (host === undefined) return isRequired ? 'no Host header' : undefined
  return hostForm.test(host) ? undefined : `Host ${JSON.stringify(host)}`
}

function lengthOf(head: Head): number | undefined {
  const lengths = valuesOf(head, 'content-length')
  if (lengths.length === 0) return undefined
  if (lengths.length > 1) throw new Invalid('framing', 'two Content-Length headers')
  const [length = ''] = lengths
  if (!/^[0-9]{1,15}$/.test(length))
    throw new Invalid('framing', `Content-Length ${JSON.stringify(length.slice(0, 40))}`)
  return Number(length)
}

/** True if the message is chunked; undefined if it has no transfer coding. */
function codingOf(head: Head): true | undefined {
  const fields = valuesOf(head, 'transfer-encoding')
  if (fields.length === 0) return undefined
  const codings = listOf(head, 'transfer-encoding')
  if (codings.some((coding) => !token.test(coding)) || codings.indexOf('chunked') !== codings.length - 1)
    throw new Invalid('framing', `Transfer-Encoding ${JSON.stringify(fields.join(', ').slice(0, 80))}`)
  return true
}

function requestFraming(head: Head, isOld: boolean): Framing {
  const isChunked = codingOf(head)
  const length = lengthOf(head)
  if (isChunked && length !== undefined) throw new Invalid('framing', 'Transfer-Encoding with Content-Length')
  if (isChunked && isOld) throw new Invalid('framing', 'Transfer-Encoding in HTTP/1.0')
  return isChunked ? 'chunked' : (length ?? 0)
}

function responseFraming(head: Head, method: string, status: number): Framing {
  const isChunked = codingOf(head)
  const length = lengthOf(head)
  if (isChunked && length !== undefined) throw new Invalid('framing', 'Transfer-Encoding with Content-Length')
  const mustBeEmpty = status < 200 || status === 204
  if (mustBeEmpty && (isChunked || length !== undefined)) throw new Invalid('framing', `a body with status ${status}`)
  if (mustBeEmpty || status === 304 || method === 'HEAD') return 0
  return isChunked ? 'chunked' : (length ?? 'close')
}

interface Body {
  readonly body: Buffer
  readonly trailers: readonly Field[]
  readonly end: number
}

function readBody(bytes: Buffer, { line, end: start }: Head, framing: Framing, ended: boolean): Body {
  if (framing === 'chunked') return readChunks(bytes, start, line)
  if (framing === 'close' && !ended) throw new Incomplete(line)
  const end = framing === 'close' ? bytes.length : start + framing
  if (end > bytes.length) throw new Incomplete(line)
  return { body: bytes.subarray(start, end), trailers: [], end }
}

function readChunks(bytes: Buffer, start: number, startLine: string): Body {
  const chunks: Buffer[] = []
  for (let from = start; ; ) {
    const [line, behind] = readChunkLine(bytes, from, startLine)
    const size = Number.parseInt(line, 16)
    if (size === 0) {
      const { headers, end } = readFields(bytes, behind, startLine)
      return { body: Buffer.concat(chunks), trailers: headers, end }
    }
    const end = behind + size
    if (bytes.length > end && bytes[end] !== 13) throw new Invalid('framing', 'a chunk longer than its size')
    if (bytes.length > end + 1 && bytes[end + 1] !== 10) throw new Invalid('framing', 'a chunk longer than its size')
    if (bytes.length < end + 2) throw new Incomplete(startLine)
    chunks.push(bytes.subarray(behind, end))
    from = end + 2
  }
}

function readChunkLine(bytes: Buffer, start: number, startLine: string): [line: string, end: number] {
  try {
    const read = readLine(bytes, start, startLine)
    if (!chunkLine.test(read[0])) throw new Invalid('framing', `chunk size ${JSON.stringify(read[0].slice(0, 40))}`)
    return read
  } catch (error) {
    throw error instanceof Invalid ? new Invalid('framing', error.message) : error
  }
}
