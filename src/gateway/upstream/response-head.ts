/** Maximum size in bytes of a response head, and of trailers. */
export const maxHeadSize = 65_536

/** The response head of an upstream. */
export interface ResponseHead {
  readonly status: number
  /** Flat list of names and values, as received. */
  readonly headers: readonly string[]
  /** The header names in lower case. */
  readonly names: readonly string[]
  /** Size of the body in bytes; undefined if it is not known in advance. */
  readonly length: number | undefined
}

/** The response is not valid HTTP/1.1, or is ambiguous. */
export class BadResponse extends Error {
  override readonly name = 'BadResponse'
}

/**
 * Rejects invalid responses that the parsers of undici and `node:http` accept: any three-digit status, and unknown transfer
 * codings, for which they read the body until the connection ends.
 */
export function responseHead(status: number, headers: readonly string[], method: string): ResponseHead {
  if (status < 101 || status > 999) throw new BadResponse(`the response has status ${status}`)
  const names: string[] = []
  let length: string | undefined
  for (let i = 0; i < headers.length; i += 2) {
    const name = (headers[i] as string).toLowerCase()
    names.push(name)
    if (name === 'content-length') {
      if (length !== undefined) throw new BadResponse('the response has more than one Content-Length')
      length = headers[i + 1] as string
      if (!/^\d{1,15}$/.test(length)) throw new BadResponse('the Content-Length of the response is not a number')
    } else if (name === 'transfer-encoding' && (headers[i + 1] as string).toLowerCase() !== 'chunked')
      throw new BadResponse('the Transfer-Encoding of the response is not chunked')
  }
  if (method === 'HEAD' || hasNoBody(status)) return { status, headers, names, length: 0 }
  return { status, headers, names, length: length === undefined ? undefined : Number(length) }
}

/** Statuses whose responses end with the head, regardless of their headers (RFC 9112, 6.3). */
export const hasNoBody = (status: number): boolean => status < 200 || status === 204 || status === 304

/** True if the parsers of undici and `node:http` expect a body, even after a status that never has one. */
export function declaresBody(headers: readonly string[]): boolean {
  for (let i = 0; i < headers.length; i += 2) {
    const name = (headers[i] as string).toLowerCase()
    if (name === 'transfer-encoding' || (name === 'content-length' && headers[i + 1] !== '0')) return true
  }
  return false
}

/** An undocumented method of buffers. `toString('latin1')` costs twice as much for short values. */
interface Latin1 {
  latin1Slice(): string
}

/** Header bytes as Node's parser represents them: one character per byte. */
export function decodedHeaders(raw: readonly Buffer[]): string[] {
  const headers: string[] = []
  for (let i = 0; i < raw.length; i++) headers.push((raw[i] as Buffer & Latin1).latin1Slice())
  return headers
}
