/** Runs one seed of a battery against a gateway, and reports what it did wrong. */
import { type Battery, expectations, framing, host, pipelining, targets, upgrades, valid } from './client-batteries.js'
import { type Conversation, converse, plannedBytes } from './conversation.js'
import { drawFrom } from './draw.js'
import { GatewaySubject } from './gateway-subject.js'
import { Journal, type Violation } from './journal.js'
import { RawUpstream } from './raw-upstream.js'
import { AnswerCheck } from './read-answers.js'
import { Ids, requestText, type Scene } from './request-text.js'
import { readSent } from './sent-stream.js'
import { dripping, early, hostile, idle, interim } from './upstream-batteries.js'

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

export interface SeedResult {
  readonly violations: readonly Violation[]
  readonly connections: number
  readonly arrived: number
}

/** A gateway between raw clients and raw upstreams. It serves many seeds, and is started again after a crash. */
export class GatewayBed {
  readonly #root: string
  readonly #sound: RawUpstream
  readonly #hostile: RawUpstream
  #subject: GatewaySubject | undefined

  static async start(root: string): Promise<GatewayBed> {
    return new GatewayBed(root, await RawUpstream.start(new Journal()), await RawUpstream.start(new Journal()))
  }

  private constructor(root: string, sound: RawUpstream, hostile: RawUpstream) {
    this.#root = root
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
    this.#subject ??= await this.#launch()
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
  async #probe(subject: GatewaySubject, journal: Journal, where: string): Promise<void> {
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

  #launch(): Promise<GatewaySubject> {
    const route = (id: string, { port }: RawUpstream, more: object = {}) => ({
      id,
      uri: `http://127.0.0.1:${port}`,
      predicates: [`Path=/${id}/**`],
      ...more,
    })
    const short = { metadata: { responseTimeout: 400 } }
    const routes = [
      route('hostile', this.#hostile, short),
      { ...route('sound', this.#sound), predicates: ['Path=/**'] },
    ]
    return GatewaySubject.start({ root: this.#root, config: { gateway: { routes, maxConnections: 3, connectTimeout: '60s' } } })
  }
}

let probes = 0
