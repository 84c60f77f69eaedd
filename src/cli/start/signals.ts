import { exitStatus } from '../exit-status.js'
import { paintFor } from '../output/output.js'

/** The terminal and npm both forward the same Ctrl-C, so two signals within this time count as one. */
const echoMs = 250

const signals = { SIGINT: 130, SIGTERM: 143 } as const

/** How often to check that the parent shell of npm still exists. */
const parentCheckMs = 250

/** The first signal starts a graceful shutdown, after which the process ends by itself. A second signal exits immediately. */
export function stopOnSignal(close: () => Promise<void>, onStop: () => void): void {
  let stoppedAt: number | undefined
  const stop = (): void => {
    if (stoppedAt !== undefined) return
    stoppedAt = performance.now()
    onStop()
    void close()
  }
  for (const [signal, status] of Object.entries(signals))
    process.on(signal, () => {
      if (stoppedAt !== undefined && performance.now() - stoppedAt > echoMs) process.exit(status)
      stop()
    })
  onLostShell(stop)
}

/**
 * npm forwards signals only to the shell in which it runs the script, and the shell does not pass them on. A program started
 * through npm would keep running and occupy its port, so the end of that shell counts as a signal.
 */
function onLostShell(stop: () => void): void {
  if (process.env.npm_lifecycle_event === undefined) return
  const shell = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === shell) return
    clearInterval(timer)
    stop()
  }, parentCheckMs).unref()
}

/** Stops on SIGINT and SIGTERM, reloads on SIGHUP. */
export function onSignals(on: { close(): Promise<void>; reload(): void; onStop(): void }): void {
  let isStopping = false
  stopOnSignal(on.close, () => {
    isStopping = true
    on.onStop()
  })
  process.on('SIGHUP', () => {
    if (!isStopping) on.reload()
  })
}

/** Prints why the program does not start and sets exit status 1. The process ends by itself. */
export function failToStart(problem: string): void {
  process.stderr.write(`${paintFor(process.stderr)('red', 'error:')} ${problem}\n`)
  process.exitCode = exitStatus.negative
}
