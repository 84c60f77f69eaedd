/** One process, or several that share a port: what `serve` and `gateway` have in common. */
import { availableParallelism } from 'node:os'
import { sendToPrimary, type WorkerMessage } from '../../program/workers/messages.js'
import { isWorker, startWorkers } from '../../program/workers/workers.js'
import { exitStatus } from '../exit-status.js'
import type { StartReport } from './report.js'
import { onSignals } from './stop.js'

export interface Workplace {
  readonly report: StartReport
  readonly workers: number
  /** Signals are then the business of the process that started this one. */
  readonly isWorker: boolean
  /** To be called by who serves. */
  onStarted(): void
}

type Work = (workplace: Workplace) => Promise<void>

export async function runInWorkers(asked: number | 'auto', report: StartReport, work: Work): Promise<void> {
  const workers = asked === 'auto' ? availableParallelism() : asked
  if (workers === 1) await work({ report, workers, isWorker: false, onStarted() {} })
  else if (isWorker()) await workAsOne(workers, work)
  else supervise(workers, report)
}

async function workAsOne(workers: number, work: Work): Promise<void> {
  let hasStarted = false
  try {
    await work({
      report: spokenReport,
      workers,
      isWorker: true,
      onStarted() {
        hasStarted = true
      },
    })
  } finally {
    // One that does not serve ends, with its own status, instead of waiting to be told to.
    if (!hasStarted) process.channel?.unref()
  }
}

/** What a worker would print, one of them says for all. */
const spokenReport: StartReport = {
  started: (value) => sendToPrimary({ event: 'started', value }),
  reloaded: (value) => sendToPrimary({ event: 'reloaded', value: told(value) }),
  rerouted: (value) => sendToPrimary({ event: 'rerouted', value: told(value) }),
  trouble: (value) => sendToPrimary({ event: 'trouble', value }),
  stopping: () => {},
}

/** Errors do not survive the way between processes with everything they say. */
function told<T extends { readonly error: { message: string; errors: readonly unknown[] } | null }>(value: T): unknown {
  const { error } = value
  return { ...value, error: error && { message: error.message, errors: error.errors } }
}

function supervise(count: number, report: StartReport): void {
  let started: WorkerMessage | undefined
  let isReady = false
  const announce = (): void => {
    if (isReady && started !== undefined) report.started(started.value as Parameters<StartReport['started']>[0])
  }
  const workers = startWorkers(count, {
    onMessage(message) {
      if (message.event === 'started' && started === undefined) {
        started = message
        announce()
      } else if (message.event === 'reloaded') report.reloaded(message.value as Parameters<StartReport['reloaded']>[0])
      else if (message.event === 'rerouted') report.rerouted(message.value as Parameters<StartReport['rerouted']>[0])
      else if (message.event === 'trouble') report.trouble(String(message.value))
    },
    onReady() {
      isReady = true
      announce()
    },
    onRefusal(status) {
      process.exitCode = status === 0 ? exitStatus.no : status
    },
    onLoss: (worker) => report.trouble(`worker ${worker} ended; another takes its place`),
    onStaleRules: (worker, reason) => report.trouble(`worker ${worker} starts with the last valid rules: ${reason}`),
  })
  onSignals({ close: () => workers.stop(), reload: () => workers.reload(), onStop: report.stopping })
}
