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
