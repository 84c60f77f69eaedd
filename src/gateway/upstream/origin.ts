/** The scheme, host and port of an upstream. */
export interface Origin {
  readonly isSecure: boolean
  /** A name or an address, IPv6 without brackets. */
  readonly hostname: string
  readonly port: number
  /** As in a Host header: with the port unless it is the default of the scheme. */
  readonly authority: string
}

/** Equal for two origins if and only if they can share connections. */
export const originKey = ({ isSecure, authority }: Origin): string => `${isSecure ? 'https' : 'http'}://${authority}`

/** Parses `http://host:port` (or https, ws, wss) without a path. Returns undefined for anything else. */
export function parseOrigin(text: string): Origin | undefined {
  if (!URL.canParse(text)) return undefined
  const { protocol, hostname, port, pathname, search, hash, username, password } = new URL(text)
  const isSecure = protocol === 'https:' || protocol === 'wss:'
  if (!isSecure && protocol !== 'http:' && protocol !== 'ws:') return undefined
  if (hostname === '' || username || password || search || hash || pathname !== '/') return undefined
  const defaultPort = isSecure ? 443 : 80
  const number = port === '' ? defaultPort : Number(port)
  return {
    isSecure,
    hostname: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: number,
    authority: number === defaultPort ? hostname : `${hostname}:${number}`,
  }
}
