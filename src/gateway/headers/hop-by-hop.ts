/** Headers that apply to a single connection and are not forwarded. */
const hopByHop: readonly string[] = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]

/** Request headers that are not forwarded: hop-by-hop headers, and those that the gateway sets itself. */
export const strippedRequestHeaders: ReadonlySet<string> = new Set([
  ...hopByHop,
  'host',
  'content-length',
  'expect',
  // CGI-style upstreams would take these for the framing of the request.
  'content_length',
  'transfer_encoding',
  'via',
  'max-forwards',
  // CGI-style upstreams would expose it as the environment variable HTTP_PROXY.
  'proxy',
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
])

/** Response headers that are not forwarded. `Content-Length` is: the body has the same length on both sides. */
export const hopByHopHeaders: ReadonlySet<string> = new Set(hopByHop)

/** Headers that filters must not set, because they define the framing of a message or manage its connection. */
export const forbiddenFilterHeaders: ReadonlySet<string> = new Set([...hopByHop, 'content-length', 'trailer', 'expect'])

/** Fields that are invalid in trailers: framing, routing, authentication and content metadata (RFC 9110, 6.5.1). */
export const forbiddenTrailers: ReadonlySet<string> = new Set([
  ...strippedRequestHeaders,
  'trailer',
  'authorization',
  'cookie',
  'set-cookie',
  'content-encoding',
  'content-type',
  'content-range',
  'cache-control',
])

/** The header names listed in `Connection`, in lower case; undefined if it is absent, `keep-alive` or `close`. */
export function connectionOptions(connection: string | undefined): ReadonlySet<string> | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined
  return new Set(connection.split(',').map((name) => name.trim().toLowerCase()))
}
