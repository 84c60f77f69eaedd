/** The processes under test, the requests to them, and the record of what they answer. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort } from '../servers/free-port.js'
import { remoteProcess, serverProcess } from './checker/degraded.js'
import { type Entry, type Incident, LoopTimes, nowUs } from './history.js'
import { bandOf, gatewayPaths, limiterLimit, limitOf, limits, ruleDocument, ruleSetId } from './limits.js'
import { ControlClient } from './processes/control-client.js'
import { askControl, askGateway, askServer, editRule } from './processes/http-driver.js'
import { type Asked, Load, type LoadPlan } from './processes/load.mjs'
import { Subject } from './processes/process-under-test.js'
import type { Topology } from './topologies/topology.js'

export interface BedOptions {
  readonly root: string
  readonly topology: Topology
  /** Negative control: the library processes count in their own memory, and claim that it is shared. */
  readonly breaks?: boolean
  /** The processes to start; all if left out. */
  readonly only?: readonly string[]
}

const gatewayProcess = 'gateway'
const perSecond = { library: 125, remote: 80, server: 70, gateway: 60 }
/** More loop time than any request may take. */
const longestWaitMs = 4_000
/** A process whose event loop is blocked has no loop time. */
const longestBlockMs = 300_000

export class Bed {
  readonly subjects: readonly Subject[]
  entries: Entry[] = []
  incidents: Incident[] = []
  loops = new LoopTimes()
  /** When the requests of the last run ended. */
  unloadedAt = nowUs()
  readonly #drivers: ReadonlyMap<string, Load>
  readonly #directory: string
  readonly #serverUrl: string
  readonly #close: () => void
  readonly #ticking: NodeJS.Timeout
  readonly #serverControl: ControlClient<true>

  static async start(options: BedOptions): Promise<Bed> {
    const upstream = createServer((_, response) => response.end('ok'))
    await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
    const { port } = upstream.address() as AddressInfo
    const close = () => {
      upstream.close()
      upstream.closeAllConnections()
    }
    const bed = new Bed(options, { upstream: port, server: await freePort(), gateway: await freePort() }, close)
    try {
      const server = bed.subjects.find(({ name }) => name === serverProcess)
      await server?.start()
      await Promise.all(bed.subjects.filter((one) => one !== server).map((subject) => subject.start()))
    } catch (error) {
      await bed.stop()
      throw error
    }
    return bed
  }

  private constructor(
    { root, topology, breaks = false, only }: BedOptions,
    ports: { readonly upstream: number; readonly server: number; readonly gateway: number },
    close: () => void,
  ) {
    this.#close = close
    this.#directory = mkdtempSync(join(tmpdir(), 'fluxgate-chaos-'))
    this.#serverUrl = `http://127.0.0.1:${ports.server}`
    const gatewayUrl = `http://127.0.0.1:${ports.gateway}`
    const prefix = `chaos-${process.pid}`
    const rules = join(this.#directory, 'rules.json')
    writeFileSync(rules, JSON.stringify(ruleDocument(), null, 2))
    const settings = { store: { ...topology.where, prefix }, rules: { type: 'file', path: rules } }
    const config = (name: string, more: object) => {
      const file = join(this.#directory, `${name}.json`)
      writeFileSync(file, JSON.stringify({ ...settings, ...more }))
      return file
    }
    const route = { id: 'all', uri: `http://127.0.0.1:${ports.upstream}`, predicates: ['Path=/**'] }
    const gatewayConfig = config(gatewayProcess, {
      gateway: { port: ports.gateway, routes: [{ ...route, filters: [`RateLimiter=${ruleSetId}`] }] },
      // A degraded decision is then a 503: nothing else in a response of the gateway shows it.
      ratelimit: { onStoreFailure: 'DENY', userIdHeader: 'X-User-Id', apiKeyHeader: 'X-API-Key' },
    })
    const serverConfig = config(serverProcess, { server: { port: ports.server } })
    const subject = (name: string, program: string, args: SubjectArgs, port?: number) =>
      new Subject({
        name,
        root,
        program,
        directory: this.#directory,
        args,
        ...(port !== undefined && { port }),
        onTicks: (ticks) => this.loops.add(name, ticks),
        onEntry: (asked) => this.#record(name, asked),
      })
    const worker = (name: string, kind: string, more: object) =>
      subject(name, 'test/chaos/processes/worker.mjs', (self, plan) => [
        JSON.stringify({ kind, self, rules, plan, ...more }),
      ])
    const limiter = { algorithm: limiterLimit.algorithm, bands: [bandOf(limiterLimit)] }
    const library = { store: { where: topology.where, prefix }, limiter, breaks }
    const cli = (command: string, file: string, port: number) =>
      subject(
        command === 'serve' ? serverProcess : command,
        'dist/cli/main.js',
        () => [command, '--config', file],
        port,
      )
    const subjects = [
      worker('library-1', 'library', library),
      worker('library-2', 'library', library),
      worker(remoteProcess, 'remote', { server: { url: this.#serverUrl, name: serverProcess, ruleSetId } }),
      cli('serve', serverConfig, ports.server),
      cli('gateway', gatewayConfig, ports.gateway),
    ]
    this.subjects = subjects.filter(({ name }) => only?.includes(name) ?? true)
    const driver = (name: string, ask: ConstructorParameters<typeof Load>[0]): [string, Load] => [
      name,
      new Load(ask, (asked) => this.#record(name, asked)),
    ]
    this.#drivers = new Map([
      driver(serverProcess, askServer(this.#serverUrl, ruleSetId)),
      driver(gatewayProcess, askGateway(gatewayUrl)),
    ])
    this.#serverControl = new ControlClient({
      name: serverProcess,
      ask: askControl(`${this.#serverUrl}/health/live`),
    })
    this.#ticking = setInterval(() => this.loops.add('harness', [nowUs()]), LoopTimes.sliceMs).unref()
  }

  subject(name: string): Subject {
    const found = this.subjects.find((one) => one.name === name)
    if (!found) throw new Error(`no process is named ${name}`)
    return found
  }

  /** Starts a new record and the requests of all processes. */
  load(seed: number, tag: string): void {
    this.entries = []
    this.incidents = []
    this.loops = new LoopTimes()
    const paths = [...new Set(limits.map(({ path }) => path))]
    for (const [index, { name }] of this.subjects.entries()) {
      const rate = perSecond[name.replace(/-\d$/, '') as keyof typeof perSecond]
      const plan: LoadPlan = { seed: seed * 100 + index * 10, tag, perSecond: rate, paths }
      const driver = this.#drivers.get(name)
      if (driver) driver.start(name === gatewayProcess ? { ...plan, paths: gatewayPaths } : plan)
      else this.subject(name).load(plan)
    }
  }

  /**
   * Ends the requests; resolves with those that have no answer after the longest time that any may take. That is loop time,
   * as for every deadline: a server that starves has a backlog, and answers it late.
   */
  async unload(): Promise<{ process: string; startAt: number; path: string }[]> {
    for (const driver of this.#drivers.values()) driver.stop()
    for (const subject of this.subjects) subject.load(undefined)
    this.unloadedAt = nowUs()
    for (;;) {
      const now = nowUs()
      const pending = (await Promise.all(this.subjects.map((subject) => this.#pendingOf(subject)))).flat()
      const isOver = pending.every(
        ({ process }) =>
          Math.min(...[process, 'harness'].map((name) => this.loops.between(name, this.unloadedAt, now))) >
          longestWaitMs,
      )
      if (isOver || now > this.unloadedAt + longestBlockMs * 1_000) return pending
      await pause(20)
    }
  }

  /** When the server was slow, which explains decisions of the process that asks it. */
  async observations(): Promise<Incident[]> {
    if (this.subjects.some(({ name }) => name === serverProcess)) await this.#serverControl.answered()
    const processes = [remoteProcess]
    return this.#serverControl
      .observations()
      .map(({ what, from, to }) => ({ fault: what, isObserved: true, from, to, explains: 'outage', processes }))
  }

  edit(rule: string, more: number): Promise<void> {
    const limit = limitOf(rule)
    return editRule(this.#serverUrl, ruleSetId, rule, bandOf(limit, limit.capacity + more))
  }

  async stop(): Promise<void> {
    clearInterval(this.#ticking)
    const stopped = this.#serverControl.stop()
    for (const driver of this.#drivers.values()) driver.stop()
    await Promise.all(this.subjects.map((subject) => subject.kill()))
    await stopped
    this.#close()
    rmSync(this.#directory, { recursive: true, force: true })
  }

  async #pendingOf(subject: Subject) {
    const pending = this.#drivers.get(subject.name)?.pending ?? (await subject.pending())
    return pending.map((one) => ({ process: subject.name, ...one }))
  }

  #record(name: string, asked: Asked): void {
    const life = this.subject(name).self
    const { allowed = false, degraded = false, delayMs = 0, reason = '', charges = [], decidedBy = name } = asked
    // Requests name a process that decided elsewhere; its current start is the one that did.
    const decider = decidedBy.includes('#') ? decidedBy : this.subject(decidedBy).self
    const answer = { allowed, degraded, delayMs, reason, charges, decidedBy: decider }
    this.entries.push({ ...asked, ...answer, process: name, life })
  }
}

type SubjectArgs = ConstructorParameters<typeof Subject>[0]['args']
