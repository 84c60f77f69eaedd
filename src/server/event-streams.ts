import type { ServerResponse } from 'node:http'
import type { Decision } from '../core/decision.js'
import { messageOf } from '../core/errors.js'
import type { RequestContext } from '../core/request-context.js'
import type { ShowKey } from '../telemetry/key-digest.js'
import { recentDecision } from '../telemetry/statistics/local-statistics.js'
import { ApiProblem } from './request/api-problem.js'
import type { ServedGate } from './served-gate.js'

export interface EventStreamOptions {
  readonly gate: ServedGate
  readonly showKey: ShowKey
  /** Milliseconds of any clock. */
  readonly now?: () => number
}

export const maxStreams = 100
/** Of all decisions a sample is told; each says for how many it stands. */
const decisionsPerSecond = 20
const heartbeatMs = 15_000
/** Who reads more slowly than this much is told goodbye: events wait in memory. */
export const maxWaitingBytes = 64 * 1024

/**
 * Server-sent events for whoever watches. Nobody watching, nobody listens: decisions cost nothing then. There is no memory of
 * past events, so a stream begins with the present, whatever `Last-Event-ID` says.
 */
export class EventStreams {
  readonly #gate: ServedGate
  readonly #showKey: ShowKey
  readonly #now: () => number
  readonly #streams = new Set<ServerResponse>()
  #stopListening: (() => void) | undefined
  #isClosed = false
  #lastId = 0
  #second = { startedAt: Number.NEGATIVE_INFINITY, told: 0 }
  #untold = 0

  constructor({ gate, showKey, now = () => performance.now() }: EventStreamOptions) {
    this.#gate = gate
    this.#showKey = showKey
    this.#now = now
  }

  /** Takes over a response until its client leaves. Throws 503 where there is no place. */
  async open(): Promise<(response: ServerResponse) => void> {
    if (this.#isClosed) throw new ApiProblem('FLUXGATE_UNAVAILABLE', 'The server is stopping.')
    if (this.#streams.size >= maxStreams)
      throw new ApiProblem('FLUXGATE_UNAVAILABLE', `${maxStreams} clients are listening already.`, {
        headers: { 'Retry-After': '10' },
      })
    const { status } = await this.#gate.health()
    return (response) => this.#add(response, status)
  }

  /** Ends all streams, and opens no more. */
  close(): void {
    this.#isClosed = true
    for (const response of this.#streams) response.end()
  }

  #add(response: ServerResponse, status: string): void {
    response.writeHead(200, {
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      'X-Accel-Buffering': 'no',
    })
    this.#streams.add(response)
    this.#stopListening ??= this.#listen()
    response.once('close', () => {
      this.#streams.delete(response)
      if (this.#streams.size > 0) return
      this.#stopListening?.()
      this.#stopListening = undefined
    })
    response.write(`retry: 3000\n\n${this.#event('health', { status, error: null })}`)
    if (this.#isClosed) response.end()
  }

  #listen(): () => void {
    const gate = this.#gate
    const stops = [
      gate.on('decision', ({ decision, context }) => this.#decided(decision, context)),
      gate.on('reload', ({ changed, error }) => this.#tell('reload', { changed, error: error?.message ?? null })),
      gate.on('degraded', ({ error }) => this.#tell('health', { status: 'DEGRADED', error: messageOf(error) })),
      gate.on('recovered', () => this.#tell('health', { status: 'UP', error: null })),
    ]
    const heartbeat = setInterval(() => this.#write(': still here\n\n'), heartbeatMs).unref()
    return () => {
      clearInterval(heartbeat)
      for (const stop of stops) stop()
    }
  }

  #decided(decision: Decision, context: RequestContext): void {
    const now = this.#now()
    this.#untold += 1
    if (now - this.#second.startedAt >= 1_000) this.#second = { startedAt: now, told: 0 }
    if (this.#second.told === decisionsPerSecond) return
    this.#second.told += 1
    const told = { decision, context, at: Date.now(), weight: this.#untold }
    this.#untold = 0
    this.#tell('decision', recentDecision(told, this.#showKey))
  }

  #tell(name: string, data: object): void {
    this.#write(this.#event(name, data))
  }

  /** JSON has no line breaks, so that nothing in it can begin another event. */
  #event(name: string, data: object): string {
    this.#lastId += 1
    return `id: ${this.#lastId}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`
  }

  #write(text: string): void {
    for (const response of this.#streams) {
      response.write(text)
      if (response.writableLength > maxWaitingBytes) response.destroy()
    }
  }
}
