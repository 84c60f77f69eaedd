import { STATUS_CODES } from 'node:http'

/** An answer that no application has given. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** An answer as it stands on the wire, for connections that `node:http` has let go of. The last on its connection. */
export function rawAnswer({ status, headers, body }: Answer): string {
  return rawHead({ status, headers, body }) + body
}

/** The same to a HEAD, which has everything but the body. */
export function rawHead({ status, headers, body }: Answer): string {
  const lines = Object.entries({
    ...headers,
    Date: new Date().toUTCString(),
    'Content-Length': String(Buffer.byteLength(body)),
    Connection: 'close',
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n`
}
