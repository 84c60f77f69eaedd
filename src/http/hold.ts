import { type Clock, schedule } from '../core/clock.js'

/** Holds a delayed request until its time; false if the caller leaves before. Costs a timer, not a thread. */
export function hold(delayMs: number, signal: AbortSignal, clock: Clock): Promise<boolean> {
  if (signal.aborted) return Promise.resolve(false)
  if (delayMs <= 0) return Promise.resolve(true)
  return new Promise((resolve) => {
    const left = (): void => {
      cancel()
      resolve(false)
    }
    const cancel = schedule(clock, delayMs, () => {
      signal.removeEventListener('abort', left)
      resolve(true)
    })
    signal.addEventListener('abort', left, { once: true })
  })
}
