/** The part of the Redis protocol that the harness needs, so that it does not depend on the clients under test. */
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

export type Reply = string | number | null | Reply[]
export type Argument = string | number

/** An error reply of the server. */
export class ReplyError extends Error {}

export interface Address {
  readonly host: string
  readonly port: number
  readonly password?: string | undefined
  /** With a certificate to trust, the connection uses TLS. */
  readonly trustedCertificate?: string | undefined
}

export interface Connection {
  call(...command: Argument[]): Promise<Reply>
  close(): void
}

interface Waiter {
  resolve(reply: Reply): void
  reject(error: Error): void
}

const crlf = '\r\n'

/**
 * Sends commands at once and resolves with their replies in order. A reply that takes longer than `timeoutMs` closes
 * the connection.
 */
export async function openConnection(address: Address, timeoutMs = 30_000): Promise<Connection> {
  const { host, port, password, trustedCertificate } = address
  const socket = trustedCertificate ? connectTls({ host, port, ca: trustedCertificate }) : connectTcp({ host, port })
  const waiting: Waiter[] = []
  const fail = (error: Error) => {
    for (const waiter of waiting.splice(0)) waiter.reject(error)
    socket.destroy()
  }
  socket.setTimeout(timeoutMs, () => fail(new Error(`no answer from ${host}:${port} in ${timeoutMs} ms`)))
  socket.on('error', fail)
  socket.on('close', () => fail(new Error(`${host}:${port} has closed the connection`)))
  receive(socket, (reply) => {
    const waiter = waiting.shift()
    if (reply instanceof ReplyError) waiter?.reject(reply)
    else waiter?.resolve(reply)
  })
  const connection: Connection = {
    call: (...command) =>
      new Promise((resolve, reject) => {
        waiting.push({ resolve, reject })
        if (socket.destroyed) fail(new Error(`the connection to ${host}:${port} is closed`))
        else socket.write(encode(command))
      }),
    close: () => socket.destroy(),
  }
  if (password !== undefined) await connection.call('AUTH', password)
  return connection
}

/** Runs one command on a new connection. */
export async function callOnce(address: Address, ...command: Argument[]): Promise<Reply> {
  const connection = await openConnection(address)
  try {
    return await connection.call(...command)
  } finally {
    connection.close()
  }
}

function encode(command: readonly Argument[]): string {
  const parts = command.map((part) => `$${Buffer.byteLength(String(part))}${crlf}${part}${crlf}`)
  return `*${command.length}${crlf}${parts.join('')}`
}

function receive(socket: Socket, onReply: (reply: Reply | ReplyError) => void): void {
  let pending: Buffer = Buffer.alloc(0)
  socket.on('data', (chunk: Buffer) => {
    pending = Buffer.concat([pending, chunk])
    for (let parsed = parse(pending, 0); parsed; parsed = parse(pending, 0)) {
      pending = pending.subarray(parsed.end)
      onReply(parsed.reply)
    }
  })
}

interface Parsed {
  readonly reply: Reply | ReplyError
  readonly end: number
}

/** Returns undefined while the reply is incomplete. */
function parse(data: Buffer, start: number): Parsed | undefined {
  const lineEnd = data.indexOf(crlf, start)
  if (lineEnd < 0) return undefined
  const end = lineEnd + 2
  const line = data.toString('utf8', start + 1, lineEnd)
  switch (data.toString('latin1', start, start + 1)) {
    case '+':
      return { reply: line, end }
    case '-':
      return { reply: new ReplyError(line), end }
    case ':':
      return { reply: Number(line), end }
    case '$':
      return parseBulk(data, end, Number(line))
    default:
      return parseArray(data, end, Number(line))
  }
}

function parseBulk(data: Buffer, start: number, length: number): Parsed | undefined {
  if (length < 0) return { reply: null, end: start }
  if (data.length < start + length + 2) return undefined
  return { reply: data.toString('utf8', start, start + length), end: start + length + 2 }
}

function parseArray(data: Buffer, start: number, length: number): Parsed | undefined {
  if (length < 0) return { reply: null, end: start }
  const items: Reply[] = []
  let end = start
  for (let i = 0; i < length; i++) {
    const item = parse(data, end)
    if (!item) return undefined
    items.push(item.reply instanceof ReplyError ? item.reply.message : item.reply)
    end = item.end
  }
  return { reply: items, end }
}
