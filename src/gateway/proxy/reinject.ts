import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'

/**
 * Handles a request that offers an unsupported protocol, such as `Upgrade: h2c`, or offers it in HTTP/1.0, as a plain request. `node:http` stops parsing
 * a connection at an upgrade, so the request is put back on the socket without the offer and parsed again.
 */
export function reinjectWithoutUpgrade(
  server: Server,
  arrival: 'connection' | 'secureConnection',
  request: IncomingMessage,
  socket: Duplex,
  first: Buffer,
): void {
  const { method, url, httpVersion, rawHeaders } = request
  let head = `${method} ${url} HTTP/${httpVersion}\r\n`
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string
    const value = rawHeaders[i + 1] as string
    const lower = name.toLowerCase()
    if (lower === 'upgrade' || lower === 'http2-settings') continue
    head += `${name}: ${lower === 'connection' ? withoutUpgrade(value) : value}\r\n`
  }
  socket.unshift(Buffer.concat([Buffer.from(`${head}\r\n`, 'latin1'), first]))
  server.emit(arrival, socket)
}

const withoutUpgrade = (connection: string): string =>
  connection
    .split(',')
    .filter((option) => !['upgrade', 'http2-settings'].includes(option.trim().toLowerCase()))
    .join(',')
