/** Metrics of all workers as those of one process: whoever is asked asks the others, by way of the process that started them. */
import type { Worker } from 'node:cluster'
import { mergeMetrics } from '../telemetry/merge-metrics.js'

/** In this order: a worker wants them, the primary asks all, each tells its own, the primary hands over what there is. */
interface Message {
  readonly metrics: 'WANTED' | 'TELL' | 'TOLD' | 'ALL'
  readonly id: string
  readonly texts?: readonly string[]
}

const isMessage = (value: unknown): value is Message =>
  typeof value === 'object' && value !== null && 'metrics' in value

/** Who does not answer by then is busy, or gone. */
const patienceMs = 1_000

interface Round {
  readonly asker: Worker
  readonly texts: string[]
  missing: number
  readonly timer: NodeJS.Timeout
}

/** For the primary. */
export class MetricsExchange {
  readonly #workers: () => readonly Worker[]
  readonly #rounds = new Map<string, Round>()

  constructor(workers: () => readonly Worker[]) {
    this.#workers = workers
  }

  /** Whether the message was about metrics. */
  take(from: Worker, message: unknown): boolean {
    if (!isMessage(message)) return false
    if (message.metrics === 'WANTED') this.#begin(from, message.id)
    if (message.metrics === 'TOLD') this.#hear(message)
    return true
  }

  #begin(asker: Worker, asked: string): void {
    const id = `${asker.id}:${asked}`
    const workers = this.#workers()
    const timer = setTimeout(() => this.#end(id), patienceMs).unref()
    this.#rounds.set(id, { asker, texts: [], missing: workers.length, timer })
    for (const worker of workers) worker.send({ metrics: 'TELL', id } satisfies Message)
  }

  #hear({ id, texts = [] }: Message): void {
    const round = this.#rounds.get(id)
    if (round === undefined) return
    round.texts.push(...texts)
    round.missing -= 1
    if (round.missing === 0) this.#end(id)
  }

  #end(id: string): void {
    const round = this.#rounds.get(id)
    if (round === undefined) return
    this.#rounds.delete(id)
    clearTimeout(round.timer)
    const message: Message = { metrics: 'ALL', id: id.slice(id.indexOf(':') + 1), texts: round.texts }
    if (round.asker.isConnected()) round.asker.send(message)
  }
}

/** For a worker: the metrics of all, made of each one's own. */
export function metricsOfAll(own: () => Promise<string>): () => Promise<string> {
  let last = 0
  const waiting = new Map<string, (texts: readonly string[]) => void>()
  const send = (message: Message): void => {
    if (process.connected) process.send?.(message)
  }
  process.on('message', async (message: unknown) => {
    if (!isMessage(message)) return
    const { metrics, id, texts = [] } = message
    if (metrics === 'TELL') send({ metrics: 'TOLD', id, texts: [await own()] })
    if (metrics === 'ALL') waiting.get(id)?.(texts)
  })
  return async () => {
    const id = String(++last)
    const texts = await new Promise<readonly string[]>((resolve) => {
      const timer = setTimeout(resolve, 2 * patienceMs, []).unref()
      waiting.set(id, (all) => {
        clearTimeout(timer)
        resolve(all)
      })
      send({ metrics: 'WANTED', id })
    })
    waiting.delete(id)
    // Better one's own than none.
    return texts.length === 0 ? own() : mergeMetrics(texts)
  }
}
