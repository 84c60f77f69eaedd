import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Resolves with an error message if the server cannot listen, otherwise with undefined. */
export function listen(server: Server, port: number, host: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    server.on('error', (error: NodeJS.ErrnoException) => resolve(listenProblem(error, port, host, 'GATEWAY')))
    server.listen(port, host, () => resolve(undefined))
  })
}

/** The URL of a listening server, or the reason why it cannot listen. */
export type Listening = { readonly url: string } | { readonly problem: string }

/** The part that listens. */
export type Listener = 'GATEWAY' | 'GATEWAY_METRICS' | 'SERVER'

export function listenProblem(
  error: NodeJS.ErrnoException,
  port: number,
  host: string,
  who: Listener,
  option = '--port',
): string {
  const choose = (other: number): string => `${option} ${other}, or FLUXGATE_${who}_PORT=${other}`
  switch (error.code) {
    case 'EADDRINUSE':
      return `Port ${port} on ${host} is already in use. Stop the program that uses it, or choose another port: ${choose(port < 65_535 ? port + 1 : defaultPort[who])}.`
    case 'EACCES':
      return `No permission to listen on port ${port} of ${host}. Choose a port above 1023: ${choose(defaultPort[who])}.`
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `${host} is not an address of this machine. Choose another one: ${hostOption[who]}.`
    default:
      return `Cannot listen on port ${port} of ${host} (${error.code ?? error.message}).`
  }
}

const defaultPort = { GATEWAY: 8080, GATEWAY_METRICS: 9090, SERVER: 8090 }
const hostOption = {
  GATEWAY: '--host 127.0.0.1',
  GATEWAY_METRICS: 'gateway.metricsHost: 127.0.0.1',
  SERVER: '--host 127.0.0.1',
}

/** The URL under which this machine reaches the server; a wildcard address becomes loopback. */
export function urlOf({ address, family, port }: AddressInfo, isSecure: boolean): string {
  const host = address === '0.0.0.0' ? '127.0.0.1' : address === '::' ? '::1' : address
  return `${isSecure ? 'https' : 'http'}://${family === 'IPv6' ? `[${host}]` : host}:${port}`
}

/** Replaces a wildcard address in a URL with loopback. */
export const reachable = (url: string): string =>
  url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
