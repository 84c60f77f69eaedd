/** HTTP/2 frames for clients that do what no library does. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** The headers of a gRPC call. */
export const callHeaders = (path: string) => ({
  ':method': 'POST',
  ':path': path,
  'content-type': 'application/grpc',
  te: 'trailers',
})

/** A gRPC message with its prefix. */
export function framed(message: Buffer, length = message.length, flag = 0): Buffer {
  const prefix = Buffer.from([flag, 0, 0, 0, 0])
  prefix.writeUInt32BE(length, 1)
  return Buffer.concat([prefix, message])
}

/** A connected socket. Closes after the test. */
export async function socketOf(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {}).resume()
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  return socket
}

export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
export const frameTypes = { data: 0, headers: 1, rstStream: 3, settings: 4, ping: 6, goaway: 7 }
export const flags = { ack: 1, endStream: 1, endHeaders: 4 }

export function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** The headers of a call, as literals without indexing. */
export const encodeHeaders = (path: string): Buffer =>
  Buffer.concat(
    Object.entries({ ...callHeaders(path), ':scheme': 'http', ':authority': 'a' })
      .sort(([one], [other]) => Number(other.startsWith(':')) - Number(one.startsWith(':')))
      .map(([name, value]) =>
        Buffer.concat([
          Buffer.from([0, name.length]),
          Buffer.from(name),
          Buffer.from([value.length]),
          Buffer.from(value),
        ]),
      ),
  )

export interface Frame {
  readonly type: number
  readonly flags: number
  readonly stream: number
  readonly payload: Buffer
}

/** Calls `onFrame` for every frame that the server sends. */
export function onFrames(socket: Socket, onFrame: (frame: Frame) => void): void {
  let rest = Buffer.alloc(0)
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk])
    while (rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
      const end = 9 + rest.readUIntBE(0, 3)
      onFrame({
        type: rest[3] as number,
        flags: rest[4] as number,
        stream: rest.readUInt32BE(5),
        payload: rest.subarray(9, end),
      })
      rest = rest.subarray(end)
    }
  })
}
