import type { Socket } from 'node:net'

type Done = (error?: Error | null) => void

/** How long a connection that takes no more may still have something to say. */
const patienceMs = 1_000

/**
 * A write that fails destroys its socket, and with it an answer that has arrived but was not read: what an upstream says
 * that refuses an upload. So a failure is kept back until the other side was heard to its end, which then ends the socket.
 */
export function readBeforeFailing(socket: Socket): void {
  const heard = (done: Done): Done => {
    return (error) => {
      if (!error || socket.readableEnded) done(error)
      else setTimeout(() => done(error), patienceMs).unref()
    }
  }
  const write = socket._write.bind(socket)
  socket._write = (chunk, encoding, done) => write(chunk, encoding, heard(done))
  const writeAll = socket._writev?.bind(socket)
  if (writeAll) socket._writev = (chunks, done) => writeAll(chunks, heard(done))
}
