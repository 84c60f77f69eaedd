/** Bodies, aborts, early responses and errors in every framework, behind a limiter that takes its time. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { eventually } from '../../fixtures/eventually.js'
import { type Draw, drawFrom } from '../draw.js'
import { type Conversation, converse, type Move } from '../http/conversation.js'
import { valuesOf } from '../http/http-parser.js'
import { chunked, Ids } from '../http/request-text.js'
import { Journal, show } from '../journal.js'
import type { SeedResult } from '../run.js'
import { acts, checkFrameworkAnswers } from './expected-responses.js'

interface Message {
  readonly ran?: string
  readonly ports?: Readonly<Record<string, number>>
  readonly isSettled?: true
}

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
    const rejected = new Set<string>()
    let connections = 0
    const all = Object.entries(this.#ports).flatMap(([framework, port]) => {
      const ids = new Ids(framework, seed)
      return Array.from({ length: 3 }, () => {
        connections += 1
        const where = `${name} seed ${seed}, ${framework}`
        return this.#converse(journal, where, port, conversationOf(draw, ids), rejected)
      })
    })
    await Promise.all(all)
    if (isRunning(child)) await settled(child)
    if (!isRunning(child) || this.#output !== '')
      journal.report(isRunning(child) ? 'complaint' : 'crash', `${name} seed ${seed}: ${this.#output}`)
    for (const [id, count] of this.#runs) {
      if (count > 1) journal.report('ran twice', `${id} ran ${count} times`)
      if (rejected.has(id)) journal.report('ran although rejected', id)
    }
    const arrived = this.#runs.size
    this.#runs.clear()
    this.#output = ''
    if (!isRunning(child)) this.#child = undefined
    return { violations: journal.violations, connections, arrived }
  }

  async stop(): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child === undefined || !isRunning(child)) return
    const exit = once(child, 'exit')
    child.kill('SIGKILL')
    await exit
  }

  async #converse(
    journal: Journal,
    where: string,
    port: number,
    conversation: Conversation,
    rejected: Set<string>,
  ): Promise<void> {
    const received = await converse(port, conversation)
    for (const request of received.stream.requests)
      if (valuesOf(request, 'x-act').join() === 'reject') rejected.add(valuesOf(request, 'x-id').join())
    if (this.#child === undefined || !isRunning(this.#child)) return
    checkFrameworkAnswers(received, (kind, detail) =>
      journal.report(
        kind,
        `${where}: ${detail}\n    sent ${show(received.sent)}\n    received ${show(received.bytes)}`,
      ),
    )
  }

  async #launch(): Promise<ChildProcess> {
    const program = join(this.#root, 'test', 'batteries', 'frameworks', 'apps.mjs')
    const child = fork(program, { stdio: ['ignore', 'ignore', 'pipe', 'ipc'], execArgv: [] })
    process.once('exit', () => child.kill('SIGKILL'))
    this.#child = child
    let isReady = false
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#output = (this.#output + text).slice(-8_000)
    })
    child.on('message', ({ ran, ports }: Message) => {
      if (ran !== undefined) this.#runs.set(ran, (this.#runs.get(ran) ?? 0) + 1)
      if (ports === undefined) return
      this.#ports = ports
      isReady = true
    })
    await eventually('the applications listen', () => {
      if (!isRunning(child)) throw new Error(this.#output)
      return isReady
    })
    this.#output = ''
    return child
  }
}

const isRunning = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode === null && signalCode === null

/** Resolves when everything that the applications reported has arrived here. */
const settled = (child: ChildProcess): Promise<void> =>
  new Promise((resolve) => {
    const onMessage = ({ isSettled }: Message): void => {
      if (isSettled) done()
    }
    const done = (): void => {
      child.off('message', onMessage).off('exit', done)
      resolve()
    }
    child.on('message', onMessage).once('exit', done)
    child.send('settle', () => {})
  })

/** Pipelined requests with different delays and bodies; some clients leave in the middle of a request or after it. */
function conversationOf(draw: Draw, ids: Ids): Conversation {
  const moves: Move[] = []
  for (let count = 1 + draw.int(4); count > 0; count--) {
    const { head, body } = requestOf(draw, ids.next(), moves.length === 0)
    const half = draw.int(body.length + 1)
    if (draw.chance(0.1)) {
      moves.push({ send: head + body.slice(0, half) }, { waitMs: draw.int(20) })
      return { moves: [...moves, { leave: draw.pick(['reset', 'close']) }] }
    }
    if (draw.chance(0.3))
      moves.push({ send: head + body.slice(0, half) }, { waitMs: draw.int(20) }, { send: body.slice(half) })
    else moves.push({ send: head + body })
    if (draw.chance(0.3)) moves.push({ waitMs: draw.int(20) })
    if (draw.chance(0.1)) return { moves: [...moves, { leave: draw.pick(['reset', 'close']) }] }
  }
  return { moves, pieces: draw.pick([1, 3]) }
}

function requestOf(draw: Draw, id: string, isFirst: boolean): { head: string; body: string } {
  const act = draw.pick(['none', ...Object.keys(acts)])
  const method = draw.pick(['GET', 'GET', 'HEAD', 'POST', 'POST', 'PUT'])
  const lines = [`${method} /id-${id} HTTP/1.1`, 'Host: a', `X-Id: ${id}`, `X-Act: ${act}`]
  lines.push(`X-Delay: ${draw.pick([0, 1, 5, 10, 30])}`)
  let body = ''
  if (method === 'POST' || method === 'PUT') {
    const size = draw.pick([0, 1, 200, 20_000, 200_000])
    const content = draw.text(Math.min(size, 200)).repeat(Math.ceil(size / 200))
    // node:http writes 100 Continue behind the head of a response that waits for its turn.
    if (isFirst && draw.chance(0.3)) lines.push('Expect: 100-continue')
    if (draw.chance(0.4)) {
      lines.push('Transfer-Encoding: chunked')
      body = size > 200 ? `${content.length.toString(16)}\r\n${content}\r\n0\r\n\r\n` : chunked(draw, content)
    } else {
      lines.push(`Content-Length: ${content.length}`)
      body = content
    }
  }
  return { head: `${lines.join('\r\n')}\r\n\r\n`, body }
}
