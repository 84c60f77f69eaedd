/** One client connection: the bytes that it sends, when, and all that it receives. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { countFinals } from './response-reader.js'
import { readSent, type SentStream } from './sent-stream.js'

export type Move =
  | { readonly send: string }
  | { readonly waitMs: number }
  /** Resumes with the first response of any kind, or the end of the connection. */
  | { readonly awaitAnswer: true }
  /** Sends only after 100 (Continue); a client that got a final response instead sends nothing and closes. */
  | { readonly sendIfContinued: string }
  /** Sends only after 101 (Switching Protocols), and waits until as many bytes have come back. */
  | { readonly tunnel: string }
  | { readonly leave: 'reset' | 'close' }

export interface Conversation {
  readonly moves: readonly Move[]
  /** Sizes of the writes; one write per move if left out. */
  readonly pieces?: number
  /** Half-closes as soon as everything is sent, instead of after the last response. */
  readonly halfClosesEarly?: boolean
}

export interface Received {
  readonly bytes: Buffer
  /** All bytes that were written, tunnel data excepted. */
  readonly sent: Buffer
  readonly stream: SentStream
  /** The client ended the connection before it had all responses. */
  readonly hasLeft: boolean
  /** The connection ended with an error: a response without a length is not complete then. */
  readonly isReset: boolean
  /** The gateway did not answer and did not close within the deadline. */
  readonly isSilent: boolean
  /** Bytes that went through a tunnel. */
  readonly tunnelled: string
}

/** Everything that a conversation may send as HTTP, known before it starts. */
export function plannedBytes({ moves }: Conversation): Buffer {
  let text = ''
  for (const move of moves) {
    if ('send' in move) text += move.send
    if ('sendIfContinued' in move) text += move.sendIfContinued
  }
  return Buffer.from(text, 'latin1')
}

/** Long enough for any machine: only a connection that is stuck gets there. */
const deadlineMs = Number(process.env.FLUXGATE_BATTERIES_DEADLINE_MS ?? 120_000)

export async function converse(port: number, conversation: Conversation): Promise<Received> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
  const client = new Client(socket)
  const timer = setTimeout(() => client.giveUp(), deadlineMs)
  try {
    await client.play(conversation)
  } finally {
    clearTimeout(timer)
    socket.destroy()
  }
  return client.received()
}

class Client {
  readonly #socket: Socket
  #bytes = Buffer.alloc(0)
  #sent = Buffer.alloc(0)
  #tunnelled = ''
  #hasEnded = false
  #hasLeft = false
  #isReset = false
  #isSilent = false
  #onChange = (): void => {}

  constructor(socket: Socket) {
    this.#socket = socket
    socket.on('error', () => {
      this.#isReset = true
    })
    socket.on('data', (data) => {
      this.#bytes = Buffer.concat([this.#bytes, data])
      this.#onChange()
    })
    socket.on('end', () => this.#checkEnd())
    socket.on('close', () => this.#end())
  }

  /** Node reports a reset that arrives together with data as a regular end. Only a write shows the difference. */
  #checkEnd(): void {
    if (!this.#socket.writable) this.#end()
    else
      this.#socket.write('\r\n', (error) => {
        if (error) this.#isReset = true
        this.#end()
      })
  }

  #end(): void {
    this.#hasEnded = true
    this.#onChange()
  }

  giveUp(): void {
    this.#isSilent = true
    this.#socket.destroy()
  }

  received(): Received {
    const [bytes, sent] = [this.#bytes, this.#sent]
    const [hasLeft, isReset, isSilent] = [this.#hasLeft, this.#isReset, this.#isSilent]
    return { bytes, sent, stream: readSent(sent), hasLeft, isReset, isSilent, tunnelled: this.#tunnelled }
  }

  async play({ moves, pieces = 1, halfClosesEarly = false }: Conversation): Promise<void> {
    await Promise.race([once(this.#socket, 'connect'), once(this.#socket, 'close')]).catch(() => {})
    for (const move of moves) {
      if (this.#hasEnded && !('leave' in move)) break
      await this.#make(move, pieces)
      if (this.#hasLeft) return
    }
    if (this.#tunnelled !== '') {
      this.#socket.end()
      await this.#until(() => false)
      return
    }
    if (halfClosesEarly) this.#socket.end()
    const { requests, tail } = readSent(this.#sent)
    const answers = requests.length + (tail === 'invalid' ? 1 : 0)
    await this.#until(() => countFinals(this.#bytes, requests) >= answers)
    if (!this.#socket.writableEnded) this.#socket.end()
    await this.#until(() => false)
  }

  async #make(move: Move, pieces: number): Promise<void> {
    if ('send' in move) await this.#send(move.send, pieces)
    else if ('waitMs' in move) await pause(move.waitMs)
    else if ('awaitAnswer' in move) await this.#until(() => this.#bytes.includes('\r\n\r\n'))
    else if ('sendIfContinued' in move) {
      if (/^HTTP\/1\.1 100 /.test(this.#lastHead())) await this.#send(move.sendIfContinued, pieces)
      else await this.#leave('close')
    } else if ('tunnel' in move) await this.#tunnel(move.tunnel)
    else await this.#leave(move.leave)
  }

  /** The first line of the newest response without a body. */
  #lastHead(): string {
    const text = this.#bytes.toString('latin1')
    return text.slice(Math.max(0, text.lastIndexOf('HTTP/1.1 ')))
  }

  async #tunnel(text: string): Promise<void> {
    if (!/^HTTP\/1\.1 101 /.test(this.#lastHead())) return
    const before = this.#bytes.length
    this.#tunnelled += text
    this.#socket.write(text, 'latin1')
    await this.#until(() => this.#bytes.length >= before + text.length)
  }

  async #send(text: string, pieces: number): Promise<void> {
    const bytes = Buffer.from(text, 'latin1')
    const size = Math.max(1, Math.ceil(bytes.length / pieces))
    for (let from = 0; from < bytes.length && !this.#socket.destroyed; from += size) {
      const piece = bytes.subarray(from, from + size)
      this.#sent = Buffer.concat([this.#sent, piece])
      this.#socket.write(piece)
      if (pieces > 1) await new Promise(setImmediate)
    }
  }

  async #leave(how: 'reset' | 'close'): Promise<void> {
    this.#hasLeft = true
    if (how === 'reset') this.#socket.resetAndDestroy()
    else this.#socket.destroy()
  }

  /** Resolves when the condition holds or the connection has ended. */
  async #until(condition: () => boolean): Promise<void> {
    while (!this.#hasEnded && !condition())
      await new Promise<void>((resolve) => {
        this.#onChange = resolve
      })
  }
}
