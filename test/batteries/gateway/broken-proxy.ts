/** A small proxy with one defect of choice, to show that the batteries find it. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { parseRequest, parseResponse, type RequestMessage } from '../http/http-parser.js'
import type { Subject, UpstreamPorts } from '../run.js'

export type Defect =
  | 'none'
  | 'smuggle'
  | 'cross'
  | 'repeat'
  | 'retry'
  | 'cut body'
  | 'extra bytes'
  | 'crash'
  | 'cut response'

/** After these, a client cannot know where the next response begins. */
const garbles: ReadonlySet<Defect> = new Set(['cross', 'extra bytes', 'cut response'])

export const startBrokenProxy =
  (defect: Defect) =>
  async ({ sound, hostile }: UpstreamPorts): Promise<Subject> => {
    const proxy = new BrokenProxy(defect, sound, hostile)
    await proxy.listen()
    return proxy
  }

class BrokenProxy implements Subject {
  isRunning = true
  readonly output = 'it crashed'
  readonly #defect: Defect
  readonly #ports: Readonly<Record<string, number>>
  readonly #sockets = new Set<Socket>()
  readonly #server = createServer({ allowHalfOpen: true }, (socket) => void this.#serve(socket))
  #last = Buffer.alloc(0)

  constructor(defect: Defect, sound: number, hostile: number) {
    this.#defect = defect
    this.#ports = { sound, hostile }
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
  }

  takeComplaints(): string {
    return ''
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
  }

  async #serve(socket: Socket): Promise<void> {
    this.#sockets.add(socket)
    socket.on('error', () => {})
    let bytes = Buffer.alloc(0)
    let hasSkipped = false
    try {
      for await (const data of socket) {
        bytes = Buffer.concat([bytes, data])
        for (let parsed = parseRequest(bytes); bytes.length > 0; parsed = parseRequest(bytes)) {
          if (parsed.kind === 'incomplete') break
          if (parsed.kind === 'invalid') {
            if (this.#defect !== 'smuggle') throw new Error(parsed.reason)
            hasSkipped = true
            bytes = bytes.subarray(bytes.indexOf('\r\n\r\n') + 4)
            continue
          }
          const raw = bytes.subarray(0, parsed.end)
          bytes = bytes.subarray(parsed.end)
          if (parsed.message.objection !== undefined) throw new Error(parsed.message.objection)
          await this.#relay(socket, parsed.message, raw)
          if (parsed.message.closes || garbles.has(this.#defect)) return
        }
        if (hasSkipped) throw new Error('the rest makes no sense')
      }
    } catch {
      socket.write('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
    } finally {
      socket.end()
    }
  }

  async #relay(socket: Socket, message: RequestMessage, raw: Buffer): Promise<void> {
    if (this.#defect === 'crash') this.isRunning = false
    const sent = this.#defect === 'cut body' && message.body.length > 1 ? shorten(message) : raw
    const port = this.#ports[message.target.split('/')[1] ?? ''] ?? 0
    let answer: Buffer<ArrayBuffer> = await exchange(port, message.method, sent)
    if (this.#defect === 'retry' && answer.length === 0) answer = await exchange(port, message.method, sent)
    if (answer.length === 0) throw new Error('the upstream did not answer')
    if (this.#defect === 'repeat' && message.method === 'POST') await exchange(port, message.method, sent)
    if (this.#defect === 'cross' && this.#last.length > 0) [answer, this.#last] = [this.#last, answer]
    else this.#last = answer
    if (this.#defect === 'extra bytes') answer = Buffer.concat([answer, Buffer.from('x')])
    socket.write(this.#defect === 'cut response' ? answer.subarray(0, -1) : answer)
  }
}

/** The same request with the last byte of its body missing. */
function shorten({ method, target, body }: RequestMessage): Buffer {
  const head = `${method} ${target} HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length - 1}\r\n\r\n`
  return Buffer.concat([Buffer.from(head, 'latin1'), body.subarray(0, -1)])
}

async function exchange(port: number, method: string, request: Buffer): Promise<Buffer<ArrayBuffer>> {
  const socket = connect(port, '127.0.0.1')
  socket.write(request)
  let bytes = Buffer.alloc(0)
  for await (const data of socket) {
    bytes = Buffer.concat([bytes, data])
    const parsed = parseResponse(bytes, method, false)
    if (parsed.kind === 'complete' && parsed.message.status >= 200) break
  }
  socket.destroy()
  return bytes
}
