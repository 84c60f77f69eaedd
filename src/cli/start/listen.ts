import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Resolves with what is wrong, if it cannot listen. */
export function listen(server: Server, port: number, host: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    server.on('error', (error: NodeJS.ErrnoException) => resolve(listenProblem(error, port, host, 'GATEWAY')))
    server.listen(port, host, () => resolve(undefined))
  })
}

/** Where it listens, or why it cannot. */
export type Listening = { readonly url: string } | { readonly problem: string }

/** Which of those that may listen. */
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
      return `Port ${port} of ${host} is taken. Stop the program that has it, or choose another: ${choose(port < 65_535 ? port + 1 : usualPort[who])}.`
    case 'EACCES':
      return `Port ${port} of ${host} needs rights that this process does not have. Choose one above 1023: ${choose(usualPort[who])}.`
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `${host} is no address of this machine. Choose another: ${hostOption[who]}.`
    default:
      return `Port ${port} of ${host} cannot be listened on (${error.code ?? error.message}).`
  }
}

const usualPort = { GATEWAY: 8080, GATEWAY_METRICS: 9090, SERVER: 8090 }
const hostOption = {
  GATEWAY: '--host 127.0.0.1',
  GATEWAY_METRICS: 'gateway.metricsHost: 127.0.0.1',
  SERVER: '--host 127.0.0.1',
}

/** Where to reach it from this machine: every address includes this one. */
export function urlOf({ address, family, port }: AddressInfo, isSecure: boolean): string {
  const host = address === '0.0.0.0' ? '127.0.0.1' : address === '::' ? '::1' : address
  return `${isSecure ? 'https' : 'http'}://${family === 'IPv6' ? `[${host}]` : host}:${port}`
}

/** The same of a URL. */
export const reachable = (url: string): string =>
  url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
