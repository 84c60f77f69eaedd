import { FluxGateError } from '../../../core/errors.js'
import { canonicalIp } from '../../../core/keys/ip-address.js'

/** The address of a Redis server. */
export interface RedisNode {
  /** A host name or an IP address. */
  readonly host: string
  /** A TCP port. */
  readonly port: number
}

export interface RedisAddress extends RedisNode {
  readonly tls: boolean
  readonly username?: string
  readonly password?: string
  readonly database?: number
}

/** For messages: completes "must be …". */
export const uriForms =
  'redis://user:password@host:port/database, or rediss:// for TLS, with @ : / # % in user and password percent-encoded (%40 %3A %2F %23 %25)'
export const nodeForms = 'host:port or { host, port }'

/** Parses a Redis URI; undefined if it is invalid. Messages must not show the URI, because it may contain a password. */
export function parseRedisUri(text: unknown): RedisAddress | undefined {
  if (typeof text !== 'string' || !URL.canParse(text)) return undefined
  const { protocol, hostname, port, username, password, pathname, search, hash } = new URL(text)
  const host = hostOf(hostname.replace(/^\[(.*)\]$/, '$1'))
  const [, database] = /^\/?(\d{0,5})$/.exec(pathname) ?? []
  const user = decoded(username)
  const secret = decoded(password)
  if (!['redis:', 'rediss:'].includes(protocol) || search !== '' || hash !== '' || port === '0') return undefined
  if (host === undefined || database === undefined || user === undefined || secret === undefined) return undefined
  return {
    host,
    port: port === '' ? 6379 : Number(port),
    tls: protocol === 'rediss:',
    ...(user !== '' && { username: user }),
    ...(secret !== '' && { password: secret }),
    ...(database !== '' && { database: Number(database) }),
  }
}

/** Parses `host:port`, `host`, `[::1]:port` or `{ host, port }`; undefined if the value is invalid. */
export function parseNode(value: unknown, defaultPort: number): RedisNode | undefined {
  if (typeof value === 'object' && value !== null) {
    const { host, port = defaultPort, ...others } = value as Record<string, unknown>
    const name = typeof host === 'string' ? hostOf(host) : undefined
    return name === undefined || !isPort(port) || Object.keys(others).length > 0 ? undefined : { host: name, port }
  }
  if (typeof value !== 'string') return undefined
  const [, bracketed, plain, port] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d{1,5}))?$/.exec(value) ?? []
  return parseNode(
    { host: bracketed ?? plain ?? value, port: port === undefined ? defaultPort : Number(port) },
    defaultPort,
  )
}

/** Formats a node for messages. */
export const nodeText = ({ host, port }: RedisNode): string => `${host.includes(':') ? `[${host}]` : host}:${port}`

export const addressInvalid = (place: string, allowed: string): FluxGateError =>
  new FluxGateError('FLUXGATE_CONFIG_INVALID', `${place} must be ${allowed}.`)

const hostOf = (host: string): string | undefined =>
  canonicalIp(host) !== undefined || /^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,252})$/.test(host) ? host : undefined

const isPort = (port: unknown): port is number =>
  typeof port === 'number' && Number.isInteger(port) && port >= 1 && port <= 65_535

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
