import { parseRequest, type RequestMessage } from './http-parser.js'

/** The requests in the bytes of one client connection, as a strict recipient reads them. */
export interface SentStream {
  readonly requests: readonly RequestMessage[]
  /**
   * What follows the last request. After `invalid` bytes, a request that closes its connection, or CONNECT, nothing may be
   * forwarded.
   */
  readonly tail: 'nothing' | 'incomplete' | 'invalid' | 'closed' | 'connect'
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
      return { requests, ends, tail }
    }
    requests.push(parsed.message)
    ends.push(parsed.end)
    from = parsed.end
    if (parsed.message.method === 'CONNECT') return { requests, ends, tail: 'connect' }
    if (parsed.message.closes) return { requests, ends, tail: 'closed' }
  }
}

/** The id of a request is a segment of its path; `evil` ones are written where only a confused reader finds a request. */
export const idOf = (target: string): string | undefined => /\/id-([\w.]+)/.exec(target)?.[1]
