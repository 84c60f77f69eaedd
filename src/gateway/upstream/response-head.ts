/** Bytes of a response head, or of trailers. */
export const maxHeadSize = 65_536

/** The response head of an upstream. */
export interface ResponseHead {
  readonly status: number
  /** Name, value, name, value, as they were sent. */
  readonly headers: readonly string[]
  /** The names alone, in lower case. */
  readonly names: readonly string[]
  /** Bytes of the body, if they are known before its end. */
  readonly length: number | undefined
}

/** The upstream's response is not valid HTTP/1.1, or recipients could disagree about its meaning. */
export class BadResponse extends Error {
  override readonly name = 'BadResponse'
}

/**
 * Checks what the HTTP parsers of undici and `node:http` leave open: they end a body with an unknown transfer coding at the
 * end of the connection, and accept any three digits as a status.
 */
export function responseHead(status: number, headers: readonly string[], method: string): ResponseHead {
  if (status < 101 || status > 999) throw new BadResponse(`its status is ${status}`)
  const names: string[] = []
  let length: string | undefined
  for (let i = 0; i < headers.length; i += 2) {
    const name = (headers[i] as string).toLowerCase()
    names.push(name)
    if (name === 'content-length') {
      if (length !== undefined) throw new BadResponse('it has two lengths')
      length = headers[i + 1] as string
      if (!/^\d{1,15}$/.test(length)) throw new BadResponse('its length is not a number')
    } else if (name === 'transfer-encoding' && (headers[i + 1] as string).toLowerCase() !== 'chunked')
      throw new BadResponse('its transfer coding is not chunked')
  }
  if (method === 'HEAD' || hasNoBody(status)) return { status, headers, names, length: 0 }
  return { status, headers, names, length: length === undefined ? undefined : Number(length) }
}

/** Statuses whose responses end with the head, whatever their headers announce (RFC 9112, 6.3). */
export const hasNoBody = (status: number): boolean => status < 200 || status === 204 || status === 304

/** Whether the parsers of undici and `node:http` wait for a body, also behind a status that never has one. */
export function announcesBody(headers: readonly string[]): boolean {
  for (let i = 0; i < headers.length; i += 2) {
    const name = (headers[i] as string).toLowerCase()
    if (name === 'transfer-encoding' || (name === 'content-length' && headers[i + 1] !== '0')) return true
  }
  return false
}

/** The method behind `toString('latin1')`, which costs twice as much for short values. */
interface Latin1 {
  latin1Slice(): string
}

/** Header bytes as Node's parser represents them: one character per byte. */
export function decodedHeaders(raw: readonly Buffer[]): string[] {
  const headers: string[] = []
  for (let i = 0; i < raw.length; i++) headers.push((raw[i] as Buffer & Latin1).latin1Slice())
  return headers
}
