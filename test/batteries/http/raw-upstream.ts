/** An upstream on plain TCP: it records what arrives with the strict parser, and answers by plan. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { type Journal, show } from '../journal.js'
import { endsConnection, type Plan } from '../plan.js'
import { parseRequest, type RequestMessage } from './http-parser.js'

export class RawUpstream {
  journal: Journal
  readonly #server: Server
  readonly #connections = new Set<Connection>()
  #count = 0

  static async start(journal: Journal): Promise<RawUpstream> {
    const upstream = new RawUpstream(journal)
    upstream.#server.listen(0, '127.0.0.1')
    await once(upstream.#server, 'listening')
    return upstream
  }

  private constructor(journal: Journal) {
    this.journal = journal
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      const connection = new Connection(this, socket, this.#count++)
      this.#connections.add(connection)
      socket.once('close', () => this.#connections.delete(connection))
    })
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Sends bytes on every connection that is waiting for a request, or closes it. */
  disturbIdle(text: string | undefined): void {
    for (const connection of this.#connections) connection.disturb(text)
  }

  stop(): void {
    for (const connection of this.#connections) connection.destroy()
    this.#server.close()
  }
}

/** A plan in progress. */
interface Running {
  isComplete: boolean
  /** Bytes behind the request belong to the tunnel, even if they arrive before the plan opens it. */
  readonly opensTunnel: boolean
  onRequest: () => void
}

class Connection {
  readonly #upstream: RawUpstream
  readonly #socket: Socket
  readonly #number: number
  #bytes = Buffer.alloc(0)
  #position = 0
  #running: Running | undefined
  /** The request that is arriving has its response already, or its plan is in progress. */
  #isStarted = false
  #isTunnel = false
  #isInvalid = false

  constructor(upstream: RawUpstream, socket: Socket, number: number) {
    this.#upstream = upstream
    this.#socket = socket
    this.#number = number
    socket.on('error', () => {})
    socket.on('data', (data) => this.#onData(data))
    socket.on('end', () => {
      // A gateway that closes has no interest in the rest of a response.
      if (this.#running === undefined || this.#isTunnel) socket.end()
      else socket.destroy()
    })
  }

  destroy(): void {
    this.#socket.destroy()
  }

  disturb(text: string | undefined): void {
    if (this.#running !== undefined || this.#isTunnel || this.#bytes.length > 0) return
    if (text === undefined) this.#socket.destroy()
    else this.#socket.write(text, 'latin1')
  }

  #onData(data: Buffer): void {
    if (this.#isTunnel) {
      this.#socket.write(data)
      return
    }
    this.#bytes = Buffer.concat([this.#bytes, data])
    this.#read()
  }

  #read(): void {
    const { journal } = this.#upstream
    if (this.#running?.isComplete && this.#running.opensTunnel) return
    while (!this.#isTunnel && !this.#isInvalid && this.#bytes.length > 0) {
      const parsed = parseRequest(this.#bytes)
      if (parsed.kind === 'invalid') {
        this.#isInvalid = true
        journal.report('malformed request upstream', `${parsed.reason} in ${show(this.#bytes)}`)
        this.#socket.destroy()
        return
      }
      if (parsed.kind === 'incomplete') {
        if (parsed.startLine !== undefined) this.#onHead(parsed.startLine)
        return
      }
      this.#bytes = this.#bytes.subarray(parsed.end)
      journal.arrives(parsed.message)
      this.#onRequest(parsed.message)
      if (this.#running !== undefined) return
    }
  }

  #onHead(startLine: string): void {
    if (this.#isStarted || this.#running !== undefined) return
    const [method = '', target = ''] = startLine.split(' ')
    const plan = this.#upstream.journal.planOf(target, method)
    const expects = /\r\nexpect: *100-continue\r\n/i.test(this.#bytes.toString('latin1', 0, 16_384))
    if (plan.isEarly) this.#start(target, plan, false)
    else if (expects)
      this.#start(target, { ...plan, steps: [{ write: continueText }, { awaitRequest: true }, ...plan.steps] }, false)
  }

  #onRequest({ target, method }: RequestMessage): void {
    if (this.#isStarted) {
      this.#isStarted = false
      if (this.#running !== undefined) this.#running.isComplete = true
      this.#running?.onRequest()
    } else this.#start(target, this.#upstream.journal.planOf(target, method), true)
  }

  #start(target: string, plan: Plan, isComplete: boolean): void {
    const running = { onRequest: () => {}, isComplete, opensTunnel: plan.steps.some((step) => 'tunnel' in step) }
    this.#running = running
    this.#isStarted = !isComplete
    this.#upstream.journal.executes(target, { connection: this.#number, position: this.#position++ })
    this.#run(running, plan).finally(() => {
      this.#running = undefined
      if (!endsConnection(plan)) this.#read()
    })
  }

  async #run(running: Running, plan: Plan): Promise<void> {
    const socket = this.#socket
    for (const step of plan.steps) {
      if (socket.destroyed) break
      if ('write' in step) socket.write(step.write, 'latin1')
      else if ('drip' in step) {
        for (const byte of Buffer.from(step.drip, 'latin1')) {
          if (socket.destroyed) break
          socket.write(Buffer.from([byte]))
          await new Promise(setImmediate)
        }
      } else if ('waitMs' in step) await pause(step.waitMs)
      else if ('awaitRequest' in step) {
        if (!running.isComplete)
          await new Promise<void>((resolve) => {
            running.onRequest = resolve
            socket.once('close', () => resolve())
          })
      } else if ('flood' in step) await flood(socket, step.flood, step.times)
      else if ('tunnel' in step) {
        this.#isTunnel = true
        if (this.#bytes.length > 0) socket.write(this.#bytes)
        this.#bytes = Buffer.alloc(0)
      } else if (step.end === 'reset') socket.resetAndDestroy()
      else socket.end()
    }
  }
}

const continueText = 'HTTP/1.1 100 Continue\r\n\r\n'

async function flood(socket: Socket, text: string, times: number): Promise<void> {
  for (let sent = 0; sent < times && !socket.destroyed && socket.writable; sent++) {
    if (!socket.write(text, 'latin1'))
      await Promise.race([once(socket, 'drain'), once(socket, 'close')]).catch(() => {})
    if (sent % 16 === 15) await new Promise(setImmediate)
  }
}
