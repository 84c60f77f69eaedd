/** Where requests of a route go. */
export interface Origin {
  readonly isSecure: boolean
  /** A name or an address, IPv6 without brackets. */
  readonly hostname: string
  readonly port: number
  /** As a Host header says it: the port only if it is not the usual one. */
  readonly authority: string
}

/** The same for two origins exactly if their connections are interchangeable. */
export const originKey = ({ isSecure, authority }: Origin): string => `${isSecure ? 'https' : 'http'}://${authority}`

/** `http://host:port`, `https://…`, or the same as `ws` and `wss`; undefined if it is anything else. */
export function parseOrigin(text: string): Origin | undefined {
  if (!URL.canParse(text)) return undefined
  const { protocol, hostname, port, pathname, search, hash, username, password } = new URL(text)
  const isSecure = protocol === 'https:' || protocol === 'wss:'
  if (!isSecure && protocol !== 'http:' && protocol !== 'ws:') return undefined
  if (hostname === '' || username || password || search || hash || pathname !== '/') return undefined
  const usualPort = isSecure ? 443 : 80
  const number = port === '' ? usualPort : Number(port)
  return {
    isSecure,
    hostname: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: number,
    authority: number === usualPort ? hostname : `${hostname}:${number}`,
  }
}
