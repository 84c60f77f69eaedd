import { exitStatus } from './exit-status.js'
import { paintFor } from './output.js'

/** A terminal and npm both pass on the same Ctrl-C; two signals this close are one. */
const echoMs = 250

const signals = { SIGINT: 130, SIGTERM: 143 } as const

/** On a signal, finishes what is under way and lets the process end by itself. A second one ends it. */
export function stopOnSignal(close: () => Promise<void>, onStop: () => void): void {
  let stoppedAt: number | undefined
  const stop = (signal: keyof typeof signals): void => {
    if (stoppedAt !== undefined) {
      if (performance.now() - stoppedAt > echoMs) process.exit(signals[signal])
      return
    }
    stoppedAt = performance.now()
    onStop()
    void close()
  }
  for (const signal of Object.keys(signals) as (keyof typeof signals)[]) process.on(signal, () => stop(signal))
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
