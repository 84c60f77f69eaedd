/** Aborts, early responses and errors in every framework, behind a limiter that takes its time. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { eventually } from '../servers/eventually.js'
import { type Conversation, converse, type Move } from './conversation.js'
import { type Draw, drawFrom } from './draw.js'
import { parseResponse, valuesOf } from './http-parser.js'
import { Journal, show } from './journal.js'
import { Ids } from './request-text.js'
import type { SeedResult } from './run.js'
import { readSent } from './sent-stream.js'

export class FrameworkBed {
  readonly #root: string
  #child: ChildProcess | undefined
  #ports: Readonly<Record<string, number>> = {}
  #output = ''
  readonly #runs = new Map<string, number>()

  constructor(root: string) {
    this.#root = root
  }

  async run(name: string, seed: number): Promise<SeedResult> {
    const child = this.#child ?? (await this.#launch())
    const journal = new Journal()
    const draw = drawFrom(seed, name)
    let connections = 0
    const all = Object.entries(this.#ports).flatMap(([framework, port]) => {
      const ids = new Ids(framework, seed)
      return Array.from({ length: 3 }, () => {
        connections += 1
        return this.#converse(journal, `${name} seed ${seed}, ${framework}`, port, conversationOf(draw, ids))
      })
    })
    await Promise.all(all)
    const isRunning = child.exitCode === null && child.signalCode === null
    if (!isRunning || this.#output !== '')
      journal.report(isRunning ? 'complaint' : 'crash', `${name} seed ${seed}: ${this.#output}`)
    for (const [id, count] of this.#runs) if (count > 1) journal.report('ran twice', `${id} ran ${count} times`)
    const arrived = this.#runs.size
    this.#runs.clear()
    this.#output = ''
    if (!isRunning) this.#child = undefined
    return { violations: journal.violations, connections, arrived }
  }

  async stop(): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child === undefined || child.exitCode !== null) return
    const exit = once(child, 'exit')
    child.kill('SIGKILL')
    await exit
  }

  /** Each response must be well formed and carry the id of its request, in the order of the requests. */
  async #converse(journal: Journal, where: string, port: number, conversation: Conversation): Promise<void> {
    const { bytes, sent, isSilent } = await converse(port, conversation)
    const { requests } = readSent(sent)
    const report = (kind: string, detail: string) =>
      journal.report(kind, `${where}: ${detail}\n    sent ${show(sent)}\n    received ${show(bytes)}`)
    if (this.#child?.exitCode !== null || this.#child.signalCode !== null) return
    if (isSilent) report('silence', 'no response before the deadline')
    let from = 0
    for (const request of requests) {
      if (from >= bytes.length) return
      const parsed = parseResponse(bytes, request.method, true, from)
      if (parsed.kind === 'invalid') return report('malformed response', parsed.reason)
      if (parsed.kind === 'incomplete') return
      from = parsed.end
      const id = valuesOf(request, 'x-id').join()
      const found = valuesOf(parsed.message, 'x-id').join()
      if (found !== '' && found !== id) report('crossed answer', `a response of ${found} to ${id}`)
      const body = parsed.message.body.toString('latin1')
      if (parsed.message.status === 200 && body !== id && request.method !== 'HEAD')
        report('changed response', `${JSON.stringify(body)} to ${id}`)
    }
    if (from < bytes.length) report('unasked bytes', show(bytes.subarray(from)))
  }

  async #launch(): Promise<ChildProcess> {
    const program = join(this.#root, 'test', 'batteries', 'framework-apps.mjs')
    const child = fork(program, { stdio: ['ignore', 'ignore', 'pipe', 'ipc'], execArgv: [] })
    process.once('exit', () => child.kill('SIGKILL'))
    this.#child = child
    let isReady = false
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#output = (this.#output + text).slice(-8_000)
    })
    child.on('message', (message: { ran?: string; ports?: Record<string, number> }) => {
      if (message.ran !== undefined) this.#runs.set(message.ran, (this.#runs.get(message.ran) ?? 0) + 1)
      if (message.ports === undefined) return
      this.#ports = message.ports
      isReady = true
    })
    await eventually('the applications listen', () => {
      if (child.exitCode !== null) throw new Error(this.#output)
      return isReady
    })
    this.#output = ''
    return child
  }
}

/** Pipelined requests with different delays; some clients leave in the middle. */
function conversationOf(draw: Draw, ids: Ids): Conversation {
  const moves: Move[] = []
  for (let count = 1 + draw.int(4); count > 0; count--) {
    const id = ids.next()
    const act = draw.pick(['none', 'none', 'slow', 'throw', 'early'])
    const method = draw.pick(['GET', 'GET', 'HEAD'])
    const delay = draw.pick([0, 1, 5, 10, 30])
    moves.push({
      send: `${method} /id-${id} HTTP/1.1\r\nHost: a\r\nX-Id: ${id}\r\nX-Act: ${act}\r\nX-Delay: ${delay}\r\n\r\n`,
    })
    if (draw.chance(0.3)) moves.push({ waitMs: draw.int(20) })
    if (draw.chance(0.15)) return { moves: [...moves, { leave: draw.pick(['reset', 'close']) }] }
  }
  return { moves, pieces: draw.pick([1, 3]) }
}
