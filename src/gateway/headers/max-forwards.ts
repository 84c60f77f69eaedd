import type { IncomingMessage } from 'node:http'
import type { Answer } from '../../http/connections/raw-answer.js'

/** The `Allow` header of OPTIONS responses that the gateway sends itself. */
const allowed = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, TRACE'

export const optionsAnswer = (): Answer => ({ status: 200, headers: { Allow: allowed }, body: '' })

/** The value of `Max-Forwards`. RFC 9110 defines it for OPTIONS and TRACE only; undefined for other methods. */
export function forwardsLeft({ method, headers }: IncomingMessage): number | undefined {
  if (method !== 'OPTIONS' && method !== 'TRACE') return undefined
  const value = headers['max-forwards']
  return typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : undefined
}

/** The response to a request whose `Max-Forwards` is 0. */
export function lastHopAnswer(request: IncomingMessage): Answer {
  return request.method === 'TRACE' ? traceAnswer(request) : optionsAnswer()
}

/** Headers that TRACE returns. Others may contain secrets, which a script in a browser could then read. */
const traced: ReadonlySet<string> = new Set([
  ...['host', 'via', 'max-forwards', 'forwarded', 'user-agent', 'connection', 'te', 'upgrade'],
  ...['x-forwarded-for', 'x-forwarded-host', 'x-forwarded-port', 'x-forwarded-proto', 'traceparent', 'x-trace-id'],
])

function traceAnswer({ method, url, httpVersion, rawHeaders }: IncomingMessage): Answer {
  let body = `${method} ${url} HTTP/${httpVersion}\r\n`
  for (let i = 0; i < rawHeaders.length; i += 2)
    if (traced.has((rawHeaders[i] as string).toLowerCase())) body += `${rawHeaders[i]}: ${rawHeaders[i + 1]}\r\n`
  return { status: 200, headers: { 'Content-Type': 'message/http' }, body: `${body}\r\n` }
}
