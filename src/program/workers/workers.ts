import cluster, { type Worker } from 'node:cluster'
import { WorkerExchange } from './exchange.js'
import { sendToWorker, type WorkerMessage } from './messages.js'
import { type RulesMessage, rulesInForce, rulesWanted } from './starting-rules.js'

export interface Workers {
  /** Asks all to finish what is under way; resolves when they have ended. */
  stop(): Promise<void>
  /** Asks all to read again what they are made of. */
  reload(): void
}

interface WorkerEvents {
  /** Of the one worker that speaks for all: they all see the same files. */
  onMessage(message: WorkerMessage): void
  /** All are listening. */
  onReady(): void
  /** The first did not come so far; what was wrong it has said itself. */
  onRefusal(status: number): void
  /** One ended by itself, and another takes its place. */
  onLoss(worker: number): void
  /** A worker starts with the last valid rules, because those of the rule store could not be loaded. */
  onStaleRules(worker: number, reason: string): void
}

/** One that ends at once is not started again at once. */
const pauseMs = 1_000

/**
 * Runs this program `count` times on one port. The first worker comes alone, so that a mistake is told once. Who asks for the
 * workers must not be one of them.
 */
export function startWorkers(count: number, events: WorkerEvents): Workers {
  /** And whether it listens: before that it serves nobody, and hears nothing. */
  const workers = new Map<Worker, boolean>()
  const exchange = new WorkerExchange(() =>
    [...workers].flatMap(([worker, isListening]) => (isListening ? [worker] : [])),
  )
  let isStopping = false
  let ready = 0
  let speaker: Worker | undefined
  let onEmpty: () => void = () => {}
  /** Those of the worker that speaks for all, for workers that start while newer ones are broken. */
  let lastValidRules: unknown = null

  /** True if the message was about rules. */
  const takeRules = (worker: Worker, { event, value }: WorkerMessage): boolean => {
    if (event === rulesInForce) lastValidRules = value
    else if (event === rulesWanted) {
      if (lastValidRules !== null) events.onStaleRules(worker.id, String(value))
      sendToWorker(worker, { rules: 'LAST_VALID', ruleSets: lastValidRules } satisfies RulesMessage)
    } else return false
    return true
  }

  const launch = (): void => {
    const worker = cluster.fork()
    const startedAt = performance.now()
    workers.set(worker, false)
    speaker ??= worker
    worker.on('message', (message: WorkerMessage) => {
      if (exchange.take(worker, message) || takeRules(worker, message) || worker !== speaker) return
      if (message.event === 'started' || message.event === 'reloaded')
        sendToWorker(worker, { rules: 'ASK' } satisfies RulesMessage)
      events.onMessage(message)
    })
    // Errors of messages and signals to a worker that has just ended. One that could not be started has no `exit`.
    worker.on('error', () => {
      if (worker.process.pid === undefined) end(1)
    })
    worker.once('listening', () => {
      workers.set(worker, true)
      ready += 1
      if (ready === 1) for (let i = 1; i < count; i++) launch()
      if (ready === count) events.onReady()
    })
    worker.once('exit', (status) => end(status))
    const end = (status: number | null): void => {
      const wasListening = workers.get(worker)
      if (!workers.delete(worker)) return
      if (speaker === worker) speaker = [...workers.keys()][0]
      if (isStopping) {
        if (workers.size === 0) onEmpty()
      } else if (ready === 0 && !wasListening) events.onRefusal(status ?? 1)
      else {
        events.onLoss(worker.id)
        const isHasty = performance.now() - startedAt < pauseMs
        setTimeout(() => !isStopping && launch(), isHasty ? pauseMs : 0)
      }
    }
  }
  launch()
  return {
    reload() {
      for (const [worker, isListening] of workers) if (isListening) sendToWorker(worker, reloadRequest)
    },
    stop() {
      isStopping = true
      for (const [worker, isListening] of workers) {
        if (isListening) sendToWorker(worker, stopRequest)
        else worker.process.kill('SIGKILL')
      }
      return workers.size === 0
        ? Promise.resolve()
        : new Promise((resolve) => {
            onEmpty = resolve
          })
    },
  }
}

const stopRequest = 'stop'
const reloadRequest = 'reload'

export const isWorker = (): boolean => cluster.isWorker

/** For a worker: signals are the business of the process that started it, whose word, or end, is what counts. */
export function stopWhenTold(close: () => Promise<void>, reload: () => void): void {
  let isStopping = false
  const stop = async (): Promise<void> => {
    if (isStopping) return
    isStopping = true
    await close()
    if (process.connected) process.disconnect()
  }
  process.on('message', (message) => {
    if (message === stopRequest) void stop()
    if (message === reloadRequest) reload()
  })
  process.once('disconnect', () => void stop())
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
}
