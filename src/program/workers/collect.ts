/** Collects values from all workers. A worker requests them from the others through the primary. */
import type { Worker } from 'node:cluster'
import { sendToPrimary, sendToWorker } from './messages.js'

/** REQUEST: a worker requests values. ASK: the primary asks all workers. ANSWER: each replies. RESULT: the primary returns them. */
interface Message {
  readonly exchange: 'REQUEST' | 'ASK' | 'ANSWER' | 'RESULT'
  readonly topic: string
  readonly id: string
  /** The argument of the request, passed on to the workers. */
  readonly query?: unknown
  readonly values?: readonly unknown[]
}

const isMessage = (value: unknown): value is Message =>
  typeof value === 'object' && value !== null && 'exchange' in value

/** Workers that do not answer within this time are left out. */
const timeoutMs = 1_000

interface Round {
  readonly requester: Worker
  readonly values: unknown[]
  missing: number
  readonly timer: NodeJS.Timeout
}

/** The side of the primary. */
export class WorkerCollector {
  readonly #workers: () => readonly Worker[]
  readonly #rounds = new Map<string, Round>()

  constructor(workers: () => readonly Worker[]) {
    this.#workers = workers
  }

  /** Handles a message. Returns false if it does not belong to an exchange. */
  take(from: Worker, message: unknown): boolean {
    if (!isMessage(message)) return false
    if (message.exchange === 'REQUEST') this.#begin(from, message)
    if (message.exchange === 'ANSWER') this.#collect(message)
    return true
  }

  #begin(requester: Worker, { topic, id: requested, query }: Message): void {
    const id = `${requester.id}:${requested}`
    const workers = this.#workers()
    const timer = setTimeout(() => this.#end(topic, id), timeoutMs).unref()
    this.#rounds.set(roundOf(topic, id), { requester, values: [], missing: workers.length, timer })
    for (const worker of workers) sendToWorker(worker, { exchange: 'ASK', topic, id, query } satisfies Message)
  }

  #collect({ topic, id, values = [] }: Message): void {
    const round = this.#rounds.get(roundOf(topic, id))
    if (round === undefined) return
    round.values.push(...values)
    round.missing -= 1
    if (round.missing === 0) this.#end(topic, id)
  }

  #end(topic: string, id: string): void {
    const round = this.#rounds.get(roundOf(topic, id))
    if (round === undefined) return
    this.#rounds.delete(roundOf(topic, id))
    clearTimeout(round.timer)
    const message: Message = {
      exchange: 'RESULT',
      topic,
      id: id.slice(id.indexOf(':') + 1),
      values: round.values,
    }
    sendToWorker(round.requester, message)
  }
}

const roundOf = (topic: string, id: string): string => `${topic} ${id}`

/** The side of a worker: combines the values of all workers. Falls back to its own value if the primary does not answer. */
export function collectFromWorkers<T, Result = T, Query = void>(
  topic: string,
  own: (query: Query) => Promise<T>,
  combine: (values: readonly T[]) => Result,
): (query: Query) => Promise<Result> {
  let last = 0
  const pending = new Map<string, (values: readonly T[]) => void>()
  const send = (message: Message): void => sendToPrimary(message)
  const answer = async (id: string, query: Query): Promise<void> => {
    // A worker whose value fails is left out, like one that does not answer.
    const values = await own(query).then(
      (value) => [value],
      () => [],
    )
    send({ exchange: 'ANSWER', topic, id, values })
  }
  process.on('message', (message: unknown) => {
    if (!isMessage(message) || message.topic !== topic) return
    const { exchange, id, query, values = [] } = message
    if (exchange === 'ASK') void answer(id, query as Query)
    if (exchange === 'RESULT') pending.get(id)?.(values as readonly T[])
  })
  return async (query) => {
    const id = String(++last)
    const values = await new Promise<readonly T[]>((resolve) => {
      const timer = setTimeout(resolve, 2 * timeoutMs, []).unref()
      pending.set(id, (all) => {
        clearTimeout(timer)
        resolve(all)
      })
      send({ exchange: 'REQUEST', topic, id, query })
    })
    pending.delete(id)
    return combine(values.length === 0 ? [await own(query)] : values)
  }
}
