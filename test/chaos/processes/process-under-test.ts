/** A process under test: started, stopped, killed and restarted by the harness, and heard by it. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import { eventually } from '../../fixtures/eventually.js'
import type { Asked, LoadPlan } from './load.mjs'

export interface SubjectOptions {
  readonly name: string
  /** The folder of this repository. */
  readonly root: string
  /** A program, relative to `root`. */
  readonly program: string
  /** `self` is what entries name as the process that decided. */
  readonly args: (self: string, plan: LoadPlan | undefined) => readonly string[]
  readonly directory: string
  /** Where it listens; a process without a port is ready when it says so. */
  readonly port?: number
  readonly onTicks: (ticks: readonly number[]) => void
  readonly onEntry: (entry: Asked) => void
}

type Pending = readonly { readonly startAt: number; readonly path: string }[]

interface Message {
  readonly ticks?: readonly number[]
  readonly entry?: Asked
  readonly ready?: boolean
  readonly pending?: Pending
}

/** None of them outlives this process. */
const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

export class Subject {
  readonly name: string
  readonly #options: SubjectOptions
  #child: ChildProcess | undefined
  #life = 0
  #plan: LoadPlan | undefined
  #output = ''
  #onPending: ((pending: Pending) => void) | undefined
  #onEnd: (() => void) | undefined

  constructor(options: SubjectOptions) {
    this.name = options.name
    this.#options = options
  }

  /** With the number of its life, because local buckets end with the process. */
  get self(): string {
    return `${this.name}#${this.#life}`
  }

  /** The end of what the process has printed, for reports. */
  get output(): string {
    return this.#output
  }

  /** Resolves when the process answers requests, or asks by itself. */
  async start(): Promise<void> {
    const { root, program, args, directory, port, onTicks, onEntry } = this.#options
    this.#life++
    const child = fork(join(root, program), [...args(this.self, this.#plan)], {
      cwd: directory,
      execArgv: ['--import', join(root, 'test', 'chaos', 'processes', 'probe.mjs')],
      env: Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^FLUXGATE_|^NODE_|^VITEST/.test(name))),
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    this.#child = child
    running.add(child)
    child.once('exit', () => {
      running.delete(child)
      if (this.#child === child) this.#onEnd?.()
    })
    child.on('error', () => {})
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#output = (this.#output + text).slice(-4_000)
      })
    let isReady = false
    child.on('message', (message: Message) => {
      if (message.ticks) onTicks(message.ticks)
      if (message.entry) onEntry(message.entry)
      if (message.ready) isReady = true
      if (message.pending) this.#onPending?.(message.pending)
    })
    await eventually(`${this.name} is ready`, () => {
      if (child.exitCode !== null) throw new Error(`${this.name} has ended: ${this.#output}`)
      return port === undefined ? isReady : listens(port)
    }).catch((cause: unknown) => {
      throw new Error(`${this.name} did not start:\n${this.#output}`, { cause })
    })
  }

  load(plan: LoadPlan | undefined): void {
    this.#plan = plan
    this.#send(plan ? { start: plan } : { stop: true })
  }

  stall(ms: number): void {
    this.#send({ stallMs: ms })
  }

  signal(name: NodeJS.Signals): void {
    this.#child?.kill(name)
  }

  async kill(): Promise<void> {
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }

  /** Requests of this process that have no answer yet. */
  pending(): Promise<Pending> {
    return new Promise((resolve, reject) => {
      this.#onPending = resolve
      this.#onEnd = () => reject(new Error(`${this.name} has ended by itself: ${this.#output}`))
      if (this.#child?.connected) this.#send({ report: true })
      else this.#onEnd()
    })
  }

  #send(message: object): void {
    if (this.#child?.connected) this.#child.send(message)
  }
}

const listens = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
