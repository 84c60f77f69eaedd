import { randomUUID } from 'node:crypto'
import type { RedisConnection } from '../../redis/client/connection.js'
import { withTimeout } from '../../redis/client/with-timeout.js'
import { type CandidateReport, mergeOptionalReports } from './report.js'

export interface SharedReportsOptions {
  /** Called when the first report is written or read, so that programs without candidates open no connection. */
  readonly connect: () => RedisConnection
  /** Prefix of all Redis keys. */
  readonly prefix: string
  /** The reports of this process, with keys as they may be shown. */
  readonly own: () => readonly CandidateReport[]
}

const writeIntervalMs = 1_000
const timeoutMs = 2_000
/** Reports of processes that have ended stay for a day after the last write. */
const keepMs = 24 * 3_600_000
/** Bounds the reports per rule set, because processes that were restarted leave theirs. */
const maxProcesses = 200

/**
 * The reports of all processes that share a Redis. Each process writes its whole report about once per second, so a lost write
 * is made good by the next one, and decisions never wait.
 */
export class SharedReports {
  readonly #options: SharedReportsOptions
  readonly #process = randomUUID()
  readonly #timer: NodeJS.Timeout
  /** The text that was written last, by rule set. */
  readonly #written = new Map<string, string>()
  #connection: RedisConnection | undefined
  #writing: Promise<void> | undefined

  constructor(options: SharedReportsOptions) {
    this.#options = options
    this.#timer = setInterval(() => void this.write(), writeIntervalMs).unref()
  }

  /**
   * Writes changed reports, and removes those of candidates that this process no longer has. Joins a write in progress, so that
   * writes do not pile up while Redis is unavailable. Never rejects.
   */
  write(): Promise<void> {
    this.#writing ??= this.#writeAll()
      .catch(() => {})
      .finally(() => {
        this.#writing = undefined
      })
    return this.#writing
  }

  /** The sum over all processes. Falls back to this process while Redis is unavailable. */
  async read(ruleSetId: string): Promise<CandidateReport | undefined> {
    const own = this.#options.own().find((report) => report.ruleSetId === ruleSetId)
    // Without an active candidate there is no report, even if other processes have not removed theirs yet.
    if (own === undefined) return undefined
    try {
      const flat = (await this.#call(ruleSetId, ['HGETALL', this.#key(ruleSetId)])) as readonly string[]
      const reports = Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i], flat[2 * i + 1]] as const)
        .filter(([name]) => name !== this.#process)
        .map(([, text]) => JSON.parse(String(text)) as CandidateReport)
      return mergeOptionalReports([own, ...reports.filter(({ digest }) => digest === own.digest)])
    } catch {
      return own
    }
  }

  /** Writes the last counts and closes the connection. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#writing
    await this.write()
    await this.#connection?.close()
  }

  async #writeAll(): Promise<void> {
    const reports = this.#options.own()
    for (const report of reports) {
      const { ruleSetId } = report
      const text = JSON.stringify(report)
      if (this.#written.get(ruleSetId) === text) continue
      const key = this.#key(ruleSetId)
      const isNew = !this.#written.has(ruleSetId)
      if (isNew) await this.#makeRoom(ruleSetId)
      await this.#call(ruleSetId, ['HSET', key, this.#process, text])
      await this.#call(ruleSetId, ['PEXPIRE', key, String(keepMs)])
      this.#written.set(ruleSetId, text)
    }
    for (const ruleSetId of [...this.#written.keys()]) {
      if (reports.some((report) => report.ruleSetId === ruleSetId)) continue
      await this.#call(ruleSetId, ['DEL', this.#key(ruleSetId)])
      this.#written.delete(ruleSetId)
    }
  }

  /** Removes all reports if there are too many: those of running processes are written again when their counts change. */
  async #makeRoom(ruleSetId: string): Promise<void> {
    const key = this.#key(ruleSetId)
    const count = await this.#call(ruleSetId, ['HLEN', key])
    if (Number(count) >= maxProcesses) await this.#call(ruleSetId, ['DEL', key])
  }

  readonly #key = (ruleSetId: string): string => `${this.#options.prefix}:{statistics}:candidate:${ruleSetId}`

  #call(ruleSetId: string, command: readonly string[]): Promise<unknown> {
    this.#connection ??= this.#options.connect()
    const connection = this.#connection
    const key = this.#key(ruleSetId)
    return withTimeout({ subject: 'Redis', operation: 'share candidate reports', timeoutMs }, () =>
      connection.call(key, command),
    )
  }
}
