/** Runs `serve` and `gateway` in one process or in several workers that share a port. */
import { availableParallelism } from 'node:os'
import { sendToPrimary, type WorkerMessage } from '../../program/workers/messages.js'
import { followPrimary, isWorker, startWorkers } from '../../program/workers/workers.js'
import { exitStatus } from '../exit-status.js'
import type { StartReport } from './report.js'
import { onSignals } from './signals.js'

interface WorkerContext {
  readonly report: StartReport
  readonly workers: number
  /** Must be called once the process serves requests. Connects `close` and `reload` to signals, or to the primary in a worker. */
  onStart(close: () => Promise<void>, reload: () => void): void
}

type Work = (context: WorkerContext) => Promise<void>

export async function runInWorkers(count: number | 'auto', report: StartReport, work: Work): Promise<void> {
  const workers = count === 'auto' ? availableParallelism() : count
  const onStart = (close: () => Promise<void>, reload: () => void): void =>
    onSignals({ close, reload, onStop: report.stopping })
  if (workers === 1) await work({ report, workers, onStart })
  else if (isWorker()) await runWorker(workers, work)
  else supervise(workers, report)
}

async function runWorker(workers: number, work: Work): Promise<void> {
  let hasStarted = false
  try {
    await work({
      report: forwardedReport,
      workers,
      onStart(close, reload) {
        hasStarted = true
        followPrimary(close, reload)
      },
    })
  } finally {
    // A worker that failed to start exits with its own status instead of waiting for the primary.
    if (!hasStarted) process.channel?.unref()
  }
}

/** Forwards reports to the primary, which prints those of one worker on behalf of all. */
const forwardedReport: StartReport = {
  started: (value) => sendToPrimary({ event: 'started', value }),
  reloaded: (value) => sendToPrimary({ event: 'reloaded', value: withPlainError(value) }),
  rerouted: (value) => sendToPrimary({ event: 'rerouted', value: withPlainError(value) }),
  warning: (value) => sendToPrimary({ event: 'warning', value }),
  stopping: () => {},
}

/** Copies the error into a plain object, because IPC serialization drops the fields of Error objects. */
function withPlainError<T extends { readonly error: { message: string; errors: readonly unknown[] } | null }>(
  value: T,
): unknown {
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
      else if (message.event === 'warning') report.warning(String(message.value))
    },
    onReady() {
      isReady = true
      announce()
    },
    onStartFailure(status) {
      process.exitCode = status === 0 ? exitStatus.negative : status
    },
    onLoss: (worker) => report.warning(`worker ${worker} exited; starting a replacement`),
    onStaleRules: (worker, reason) => report.warning(`worker ${worker} starts with the last valid rules: ${reason}`),
  })
  onSignals({ close: () => workers.stop(), reload: () => workers.reload(), onStop: report.stopping })
}
