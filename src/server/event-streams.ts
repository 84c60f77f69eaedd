import type { ServerResponse } from 'node:http'
import { messageOf } from '../core/errors.js'
import type { ShowKey } from '../telemetry/key-digest.js'
import { recentDecision } from '../telemetry/statistics/local-statistics.js'
import type { DecisionSample } from '../telemetry/statistics/statistics.js'
import { ApiProblem } from './request/api-problem.js'
import type { ServerGate } from './server-gate.js'

export interface EventStreamOptions {
  readonly gate: ServerGate
  readonly showKey: ShowKey
  /** Registers a listener for sampled decisions. Default: every decision of the gate, which takes longer per decision. */
  readonly onSample?: SampleSource | undefined
  /** Milliseconds of any clock. */
  readonly now?: () => number
}

/** Returns a function that removes the listener. */
export type SampleSource = (listener: (sample: DecisionSample) => void) => () => void

export const maxStreams = 100
/** At most this many decisions are sent; each event carries the number of decisions that it represents. */
const decisionsPerSecond = 20
const heartbeatMs = 15_000
/** A client with more unread bytes than this is disconnected, because its events are buffered in memory. */
export const maxWaitingBytes = 64 * 1024

/**
 * Server-sent events. The gate is observed only while clients are connected, so decisions cost nothing otherwise. Past events
 * are not kept: a stream starts with the current state and ignores `Last-Event-ID`.
 */
export class EventStreams {
  readonly #gate: ServerGate
  readonly #showKey: ShowKey
  readonly #now: () => number
  readonly #onSample: SampleSource
  readonly #streams = new Set<ServerResponse>()
  #stopListening: (() => void) | undefined
  #isClosed = false
  #lastId = 0
  #second = { startedAt: Number.NEGATIVE_INFINITY, sent: 0 }
  /** Decisions since the last event, including those that the sample skipped. */
  #unsent = 0

  constructor({ gate, showKey, onSample = samplesOf(gate), now = () => performance.now() }: EventStreamOptions) {
    this.#gate = gate
    this.#onSample = onSample
    this.#showKey = showKey
    this.#now = now
  }

  /** Returns a function that streams events to a response until its client disconnects. Throws 503 if there are too many. */
  async open(): Promise<(response: ServerResponse) => void> {
    if (this.#isClosed) throw new ApiProblem('FLUXGATE_UNAVAILABLE', 'The server is stopping.')
    if (this.#streams.size >= maxStreams)
      throw new ApiProblem('FLUXGATE_UNAVAILABLE', `The limit of ${maxStreams} event streams is reached.`, {
        headers: { 'Retry-After': '10' },
      })
    const { status } = await this.#gate.health()
    return (response) => this.#add(response, status)
  }

  /** Ends all streams and rejects new ones. */
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
      this.#onSample((sample) => this.#decided(sample)),
      gate.on('reload', ({ changed, error }) => this.#send('reload', { changed, error: error?.message ?? null })),
      gate.on('degraded', ({ error }) => this.#send('health', { status: 'DEGRADED', error: messageOf(error) })),
      gate.on('recovered', () => this.#send('health', { status: 'UP', error: null })),
    ]
    const heartbeat = setInterval(() => this.#write(': heartbeat\n\n'), heartbeatMs).unref()
    return () => {
      clearInterval(heartbeat)
      for (const stop of stops) stop()
    }
  }

  #decided(sample: DecisionSample): void {
    const now = this.#now()
    this.#unsent += sample.weight
    if (now - this.#second.startedAt >= 1_000) this.#second = { startedAt: now, sent: 0 }
    if (this.#second.sent === decisionsPerSecond) return
    this.#second.sent += 1
    const sent = { ...sample, weight: this.#unsent }
    this.#unsent = 0
    this.#send('decision', recentDecision(sent, this.#showKey))
  }

  #send(name: string, data: object): void {
    this.#write(this.#event(name, data))
  }

  /** `JSON.stringify` produces no line breaks, so the data cannot start another event. */
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

const samplesOf =
  (gate: ServerGate): SampleSource =>
  (listener) =>
    gate.on('decision', ({ decision, context }) => listener({ decision, context, at: Date.now(), weight: 1 }))
