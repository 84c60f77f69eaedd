import { parseRequest, type RequestMessage } from './http-parser.js'

/** The requests in the bytes of one client connection, as a strict recipient reads them. */
export interface SentStream {
  readonly requests: readonly RequestMessage[]
  /**
   * The bytes after the last request. After `invalid` bytes, a request that closes its connection, or CONNECT, nothing may be
   * forwarded.
   */
  readonly tail: 'nothing' | 'incomplete' | 'invalid' | 'closed' | 'connect'
  /** The first line of an incomplete request with a complete head; it may be answered before its body has arrived. */
  readonly partial: string | undefined
  /** The offset behind each request. */
  readonly ends: readonly number[]
}

export function readSent(bytes: Buffer): SentStream {
  const requests: RequestMessage[] = []
  const ends: number[] = []
  let from = 0
  for (;;) {
    const parsed = parseRequest(bytes, from)
    if (parsed.kind !== 'complete') {
      const isEmpty = /^(?:\r\n)*$/.test(bytes.toString('latin1', from))
      const tail = parsed.kind === 'invalid' ? 'invalid' : isEmpty ? 'nothing' : 'incomplete'
      return { requests, ends, tail, partial: parsed.kind === 'incomplete' ? parsed.startLine : undefined }
    }
    requests.push(parsed.message)
    ends.push(parsed.end)
    from = parsed.end
    if (parsed.message.method === 'CONNECT') return { requests, ends, tail: 'connect', partial: undefined }
    if (parsed.message.closes) return { requests, ends, tail: 'closed', partial: undefined }
  }
}

/** The id of a request is a segment of its path; `evil` ones are written where only a confused reader finds a request. */
export const idOf = (target: string): string | undefined => /^.*[\\/]id-([\w.]+)/.exec(target)?.[1]

/** As much of a request as its first line says. */
export function requestOf(startLine: string): Pick<RequestMessage, 'method' | 'target' | 'version'> {
  const [method = '', target = '', version = ''] = startLine.split(' ')
  return { method, target, version: version.endsWith('1.0') ? '1.0' : '1.1' }
}
