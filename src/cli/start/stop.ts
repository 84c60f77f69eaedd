import { exitStatus } from '../exit-status.js'
import { paintFor } from '../output/output.js'

/** A terminal and npm both pass on the same Ctrl-C; two signals this close are one. */
const echoMs = 250

const signals = { SIGINT: 130, SIGTERM: 143 } as const

/** How often to look whether the shell of npm is still there. */
const lookMs = 250

/** On a signal, finishes what is under way and lets the process end by itself. A second one ends it. */
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
 * npm passes a signal on to the shell that it runs programs in, which ends without passing it on. What was started through
 * npm would then run for ever, on a port that nobody knows is taken; so the end of that shell counts as a signal.
 */
function onLostShell(stop: () => void): void {
  if (process.env.npm_lifecycle_event === undefined) return
  const shell = process.ppid
  const looking = setInterval(() => {
    if (process.ppid === shell) return
    clearInterval(looking)
    stop()
  }, lookMs).unref()
}

/** The same, and on SIGHUP what can change is read again. */
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

/** Says why it does not start; the process ends by itself. */
export function refuse(problem: string): void {
  process.stderr.write(`${paintFor(process.stderr)('red', 'error:')} ${problem}\n`)
  process.exitCode = exitStatus.no
}
