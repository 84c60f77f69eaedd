import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { FluxGateError } from '../../core/errors.js'
import type { FluxGateServer } from '../../program/create-server.js'

/** Resolves with an error message if the server cannot listen, otherwise with undefined. */
export function listen(server: Server, port: number, host: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    server.on('error', (error: NodeJS.ErrnoException) => resolve(listenProblem(error, port, host, 'GATEWAY')))
    server.listen(port, host, () => resolve(undefined))
  })
}

/** The URL of a listening server, or the reason why it cannot listen. */
export type Listening = { readonly url: string } | ListenProblem

export interface ListenProblem {
  readonly problem: string
}

/** The part that listens. */
type Listener = 'GATEWAY' | 'GATEWAY_METRICS' | 'SERVER' | 'SERVER_GRPC'

function listenProblem(
  error: NodeJS.ErrnoException,
  port: number,
  host: string,
  listener: Listener,
  option = '--port',
): string {
  const choose = (other: number): string => `${option} ${other}, or FLUXGATE_${listener}_PORT=${other}`
  switch (error.code) {
    case 'EADDRINUSE':
      return `Port ${port} on ${host} is already in use. Stop the program that uses it, or choose another port: ${choose(port < 65_535 ? port + 1 : defaultPort[listener])}.`
    case 'EACCES':
      return `No permission to listen on port ${port} of ${host}. Choose a port above 1023: ${choose(defaultPort[listener])}.`
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `${host} is not an address of this machine. Choose another one: ${hostOption[listener]}.`
    default:
      return `Cannot listen on port ${port} of ${host} (${error.code ?? error.message}).`
  }
}

const defaultPort = { GATEWAY: 8080, GATEWAY_METRICS: 9090, SERVER: 8090, SERVER_GRPC: 8081 }
const hostOption = {
  GATEWAY: '--host 127.0.0.1',
  GATEWAY_METRICS: 'gateway.metricsHost: 127.0.0.1',
  SERVER: '--host 127.0.0.1',
  SERVER_GRPC: 'server.grpcHost: 127.0.0.1',
}

/** The URL under which this machine reaches the server; a wildcard address becomes loopback. */
export function urlOf({ address, family, port }: AddressInfo, isSecure: boolean): string {
  const host = address === '0.0.0.0' ? '127.0.0.1' : address === '::' ? '::1' : address
  return `${isSecure ? 'https' : 'http'}://${family === 'IPv6' ? `[${host}]` : host}:${port}`
}

/** Replaces a wildcard address in a URL with loopback. */
const reachable = (url: string): string => url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')

export interface ListenAddress {
  readonly host: string
  readonly port: number
  readonly listener: Listener
  /** The option that sets the port, for error messages. */
  readonly option: string
}

/** Resolves with the URL, or with the reason why the port is unavailable. Rejects if the configuration forbids the address. */
export const listenOn = (server: FluxGateServer, address: ListenAddress): Promise<Listening> =>
  listenAt(address, async () => (await server.listen({ host: address.host, port: address.port })).url)

/** Like `listenOn`, for any server. `start` resolves with its URL. */
export async function listenAt(
  { host, port, listener, option }: ListenAddress,
  start: () => Promise<string>,
): Promise<Listening> {
  try {
    return { url: reachable(await start()) }
  } catch (error) {
    if (error instanceof FluxGateError) throw error
    return { problem: listenProblem(error as NodeJS.ErrnoException, port, host, listener, option) }
  }
}
