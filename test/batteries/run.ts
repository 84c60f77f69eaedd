/** Runs one seed of a battery against a gateway, and reports what it did wrong. */

import { drawFrom } from './draw.js'
import {
  type Battery,
  expectations,
  framing,
  host,
  pipelining,
  targets,
  upgrades,
  valid,
} from './gateway/client-batteries.js'
import { GatewaySubject } from './gateway/gateway-process.js'
import { dripping, early, hostile, idle, interim } from './gateway/upstream-batteries.js'
import { type Conversation, converse, plannedBytes } from './http/conversation.js'
import { RawUpstream } from './http/raw-upstream.js'
import { Ids, requestText, type Scene } from './http/request-text.js'
import { AnswerCheck } from './http/response-reader.js'
import { readSent } from './http/sent-stream.js'
import { Journal, type Violation } from './journal.js'

export const gatewayBatteries: Readonly<Record<string, Battery>> = {
  valid,
  framing,
  targets,
  host,
  expectations,
  upgrades,
  pipelining,
  hostile,
  dripping,
  interim,
  early,
  idle,
}

/** The proxy between clients and upstreams. */
export interface Subject {
  readonly port: number
  readonly isRunning: boolean
  readonly output: string
  takeComplaints(): string
  stop(): Promise<void>
}

export interface UpstreamPorts {
  readonly sound: number
  readonly hostile: number
}

export interface SeedResult {
  readonly violations: readonly Violation[]
  readonly connections: number
  readonly arrived: number
}

/** A gateway between raw clients and raw upstreams. It serves many seeds, and is started again after a crash. */
export class GatewayBed {
  readonly #launch: (ports: UpstreamPorts) => Promise<Subject>
  readonly #sound: RawUpstream
  readonly #hostile: RawUpstream
  #subject: Subject | undefined

  static async start(launch: (ports: UpstreamPorts) => Promise<Subject>): Promise<GatewayBed> {
    return new GatewayBed(launch, await RawUpstream.start(new Journal()), await RawUpstream.start(new Journal()))
  }

  private constructor(launch: (ports: UpstreamPorts) => Promise<Subject>, sound: RawUpstream, hostile: RawUpstream) {
    this.#launch = launch
    this.#sound = sound
    this.#hostile = hostile
  }

  async run(name: string, seed: number): Promise<SeedResult> {
    const battery = gatewayBatteries[name]
    if (battery === undefined) throw new Error(`There is no battery called ${name}.`)
    const scene = battery(drawFrom(seed, name), new Ids(name, seed))
    return this.play(scene, `${name} seed ${seed}`)
  }

  async play(scene: Scene, where: string): Promise<SeedResult> {
    this.#subject ??= await this.#launch({ sound: this.#sound.port, hostile: this.#hostile.port })
    const subject = this.#subject
    const journal = new Journal()
    for (const upstream of [this.#sound, this.#hostile]) upstream.journal = journal
    for (const [id, plan] of scene.plans) journal.plan(id, plan)
    for (const one of scene.conversations)
      for (const request of readSent(plannedBytes(one)).requests) journal.sends(request)
    const ask = async (one: Conversation, index: number): Promise<void> => {
      const received = await converse(subject.port, one)
      if (subject.isRunning) new AnswerCheck(journal, received, `${where}, connection ${index}`, scene).run()
    }
    await Promise.all(scene.conversations.map(ask))
    for (const text of scene.disturbances ?? [])
      for (const upstream of [this.#sound, this.#hostile]) upstream.disturbIdle(text)
    await this.#probe(subject, journal, where)
    const complaints = subject.takeComplaints()
    if (!subject.isRunning) {
      journal.report('crash', `${where}: the gateway ended\n${complaints || subject.output}`)
      await this.#restart()
    } else if (complaints !== '') journal.report('complaint', `${where}: ${complaints}`)
    return { violations: journal.violations, connections: scene.conversations.length, arrived: journal.arrived }
  }

  /** Connections that are kept must still be in step: these requests get their own responses. */
  async #probe(subject: Subject, journal: Journal, where: string): Promise<void> {
    const ids = new Ids('probe', probes++)
    for (const path of ['sound', 'hostile', 'sound', 'hostile']) {
      const id = ids.next()
      const probe = { moves: [{ send: requestText({ id, target: `/${path}/id-${id}` }) }] }
      for (const request of readSent(plannedBytes(probe)).requests) journal.sends(request)
      const received = await converse(subject.port, probe)
      if (!subject.isRunning) return
      // The upstream with short timeouts may be too slow on a busy machine.
      new AnswerCheck(journal, received, `${where}, probe`, { mustSucceed: path === 'sound' }).run()
    }
  }

  async stop(): Promise<void> {
    await this.#restart()
    this.#sound.stop()
    this.#hostile.stop()
  }

  async #restart(): Promise<void> {
    const subject = this.#subject
    this.#subject = undefined
    await subject?.stop()
  }
}

let probes = 0

/** The built gateway with few connections, so that requests share them. */
export const launchGateway =
  (root: string) =>
  ({ sound, hostile }: UpstreamPorts): Promise<Subject> => {
    const metadata = { responseTimeout: 400 }
    const routes = [
      { id: 'hostile', uri: `http://127.0.0.1:${hostile}`, predicates: ['Path=/hostile/**'], metadata },
      { id: 'sound', uri: `http://127.0.0.1:${sound}`, predicates: ['Path=/**'] },
    ]
    return GatewaySubject.start({
      root,
      config: { gateway: { routes, maxConnections: 3, clientShare: 1, connectTimeout: '60s' } },
    })
  }
