import type { ParseError } from '../../http/connections/parse-error.js'
import type { Answer } from '../../http/connections/raw-answer.js'
import { problemAnswer } from './gateway-problem.js'
import { badRequest, type RequestLimits, tooManyHeaders } from './request-target.js'

/** What a client is told whose request is not HTTP, too large or too slow. */
export function unreadableRequest({ code, rawPacket }: ParseError, limits: RequestLimits): Answer {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return isLongUrl(rawPacket, limits.maxUrlLength)
        ? problemAnswer(414, `A URL may have ${limits.maxUrlLength} characters.`)
        : tooManyHeaders(limits)
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return problemAnswer(408, 'The request did not arrive in time.')
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return problemAnswer(413, 'The chunks have too many extensions.')
    default:
      return badRequest('This is not an HTTP request that everybody would understand alike.')
  }
}

/** Whether it was the URL that was too long: as far as it was read, there is little else. */
function isLongUrl(packet: Buffer | undefined, max: number): boolean {
  const [, url = ''] = /^[A-Z-]{1,20} ([^ \r\n]*)/.exec(packet?.toString('latin1') ?? '') ?? []
  return url.length > max
}
