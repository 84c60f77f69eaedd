/** Headers that are about one connection, and therefore not for whoever is at the end of the next one. */
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

/** Of a request: also what the gateway says by itself. */
export const notFromClients: ReadonlySet<string> = new Set([
  ...hopByHop,
  'host',
  'content-length',
  'expect',
  'via',
  'max-forwards',
  // Upstreams that pass headers to programs as environment variables would take it for HTTP_PROXY.
  'proxy',
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
])

/** Of a response. Its length is kept: it is the same on both sides. */
export const notFromUpstreams: ReadonlySet<string> = new Set(hopByHop)

/** Headers of which no filter may be the author, because connections would be misunderstood. */
export const notForFilters: ReadonlySet<string> = new Set([...hopByHop, 'content-length', 'trailer', 'expect'])

/** A trailer comes too late to say how its message is framed, where it goes or who sends it. */
export const notInTrailers: ReadonlySet<string> = new Set([
  ...notFromClients,
  'trailer',
  'authorization',
  'cookie',
  'set-cookie',
  'content-encoding',
  'content-type',
  'content-range',
  'cache-control',
])

/** The headers that `Connection` names as its own, in lower case; undefined if it names none but the usual. */
export function namedByConnection(connection: string | undefined): ReadonlySet<string> | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined
  return new Set(connection.split(',').map((name) => name.trim().toLowerCase()))
}
