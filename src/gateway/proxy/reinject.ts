import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'

/**
 * Some clients offer to change to another protocol with any request (`Upgrade: h2c`). Nobody has to accept that, but
 * `node:http` stops reading a connection at such a request. So it is read again, without the offer.
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
    head += `${name}: ${lower === 'connection' ? withoutOffer(value) : value}\r\n`
  }
  socket.unshift(Buffer.concat([Buffer.from(`${head}\r\n`, 'latin1'), first]))
  server.emit(arrival, socket)
}

const withoutOffer = (connection: string): string =>
  connection
    .split(',')
    .filter((option) => !['upgrade', 'http2-settings'].includes(option.trim().toLowerCase()))
    .join(',')
