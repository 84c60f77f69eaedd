import { STATUS_CODES } from 'node:http'

/** A response that the server itself creates. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Formats a response for connections that `node:http` has released. It is the last one on its connection. */
export function rawAnswer({ status, headers, body }: Answer): string {
  return rawHead(status, { ...headers, 'Content-Length': String(Buffer.byteLength(body)) }) + body
}

/** Like `rawAnswer`, if the request may have been HEAD: without a body, and without a length that a GET would wait for. */
export const rawBodilessAnswer = ({ status, headers }: Answer): string => rawHead(status, headers)

function rawHead(status: number, headers: Readonly<Record<string, string>>): string {
  const lines = Object.entries({ ...headers, Date: new Date().toUTCString(), Connection: 'close' }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n`
}
