import type { Server } from 'node:http'
import type { FluxGate } from '../app/gate.js'

/** How long requests that are held may take to finish. */
const graceMs = 10_000
/** A terminal and npm both pass on the same Ctrl-C; two signals this close are one. */
const echoMs = 250

const signals = { SIGINT: 130, SIGTERM: 143 } as const

/** On a signal, takes no more requests, finishes what is held, and lets the process end by itself. A second one ends it. */
export function stopOnSignal(server: Server, gate: FluxGate, onStop: () => void): void {
  let stoppedAt: number | undefined
  const stop = (signal: keyof typeof signals): void => {
    if (stoppedAt !== undefined) {
      if (performance.now() - stoppedAt > echoMs) process.exit(signals[signal])
      return
    }
    stoppedAt = performance.now()
    onStop()
    const impatience = setTimeout(() => server.closeAllConnections(), graceMs)
    server.close(() => {
      clearTimeout(impatience)
      void gate.close()
    })
  }
  for (const signal of Object.keys(signals) as (keyof typeof signals)[]) process.on(signal, () => stop(signal))
}
