import cluster, { type Worker } from 'node:cluster'
import { WorkerCollector } from './collect.js'
import { activeRulesReport, lastValidRulesRequest, type RulesMessage } from './initial-rules.js'
import { sendToWorker, type WorkerMessage } from './messages.js'

export interface Workers {
  /** Asks all workers to finish requests in flight. Resolves when they have exited. */
  stop(): Promise<void>
  /** Asks all workers to reload rules, routes and certificates. */
  reload(): void
}

interface WorkerEvents {
  /** A report of the reporting worker. The others would report the same, because all read the same files. */
  onMessage(message: WorkerMessage): void
  /** All workers are listening. */
  onReady(): void
  /** The first worker failed to start. It has printed the reason itself. */
  onStartFailure(status: number): void
  /** A worker exited by itself and will be replaced. */
  onLoss(worker: number): void
  /** A worker starts with the last valid rules, because those of the rule store could not be loaded. */
  onStaleRules(worker: number, reason: string): void
}

/** A worker that exits within this time is replaced only after the same time, to avoid a tight restart loop. */
const restartDelayMs = 1_000

/**
 * Runs this program in `count` worker processes on one port. Starts one worker first and the others once it listens, so that a
 * startup error is reported once. Must be called in the primary process.
 */
export function startWorkers(count: number, events: WorkerEvents): Workers {
  /** All workers. The value is true once the worker listens; before that, it does not handle messages. */
  const workers = new Map<Worker, boolean>()
  const exchange = new WorkerCollector(() =>
    [...workers].flatMap(([worker, isListening]) => (isListening ? [worker] : [])),
  )
  let isStopping = false
  let ready = 0
  /** The worker whose reports are forwarded on behalf of all. */
  let reporter: Worker | undefined
  let onEmpty: () => void = () => {}
  /** The rules of the reporting worker, for workers that start while the rule store is invalid. */
  let lastValidRules: unknown = null

  /** Handles messages about rules. Returns false for other messages. */
  const takeRules = (worker: Worker, { event, value }: WorkerMessage): boolean => {
    if (event === activeRulesReport) lastValidRules = value
    else if (event === lastValidRulesRequest) {
      if (lastValidRules !== null) events.onStaleRules(worker.id, String(value))
      sendToWorker(worker, { rules: 'LAST_VALID', ruleSets: lastValidRules } satisfies RulesMessage)
    } else return false
    return true
  }

  const launch = (): void => {
    const worker = cluster.fork()
    const startedAt = performance.now()
    workers.set(worker, false)
    reporter ??= worker
    worker.on('message', (message: WorkerMessage) => {
      if (exchange.take(worker, message) || takeRules(worker, message) || worker !== reporter) return
      if (message.event === 'started' || message.event === 'reloaded')
        sendToWorker(worker, { rules: 'ASK' } satisfies RulesMessage)
      events.onMessage(message)
    })
    // Emitted for messages and signals to a worker that has just exited. A worker that failed to spawn has no `exit` event.
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
      if (reporter === worker) reporter = [...workers.keys()][0]
      if (isStopping) {
        if (workers.size === 0) onEmpty()
      } else if (ready === 0 && !wasListening) events.onStartFailure(status ?? 1)
      else {
        events.onLoss(worker.id)
        const exitedEarly = performance.now() - startedAt < restartDelayMs
        setTimeout(() => !isStopping && launch(), exitedEarly ? restartDelayMs : 0)
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

/** For workers: stops and reloads on request of the primary, stops if the primary exits, and ignores signals. */
export function followPrimary(close: () => Promise<void>, reload: () => void): void {
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
