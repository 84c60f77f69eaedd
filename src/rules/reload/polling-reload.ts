import { type Clock, maxTimerMs } from '../../core/clock.js'
import type { ReloadStrategy } from '../../core/contracts/rule-set-provider.js'
import { FluxGateError } from '../../core/errors.js'

export interface PollingOptions {
  /** Average time from the end of one reload to the start of the next, in milliseconds. Default: 30000. */
  readonly intervalMs?: number
  /** Random deviation from the interval, as a fraction from 0 to 1, so that many processes do not poll at the same time. Default: 0.1. */
  readonly jitter?: number
  readonly random?: () => number
  readonly clock?: Clock
}

/** Creates a reload strategy that reloads at a regular interval. Throws `FLUXGATE_ARGUMENT_INVALID` for invalid options. */
export function pollingReload(options: PollingOptions = {}): ReloadStrategy {
  const { intervalMs = 30_000, jitter = 0.1, random = Math.random, clock } = options
  if (!(intervalMs >= 1 && intervalMs <= maxTimerMs / 2)) {
    throw invalid(`intervalMs must be a number from 1 to ${Math.floor(maxTimerMs / 2)}; received ${intervalMs}.`)
  }
  if (!(jitter >= 0 && jitter <= 1)) throw invalid(`jitter must be a number from 0 to 1; received ${jitter}.`)
  return {
    name: 'POLLING',
    start(reload) {
      let cancel = (): void => {}
      let stopped = false
      const wait = (): void => {
        if (stopped) return
        cancel = wakeAfter(intervalMs * (1 + jitter * (2 * random() - 1)), clock, poll)
      }
      const poll = (): void => {
        // Polling continues after a failed reload.
        reload({ poll: true }).then(wait, wait)
      }
      wait()
      return () => {
        stopped = true
        cancel()
      }
    },
  }
}

/** Uses the timer of the clock if it has one, otherwise a timer that does not keep the process alive. */
export function wakeAfter(ms: number, clock: Clock | undefined, wake: () => void): () => void {
  if (clock?.schedule) return clock.schedule(ms, wake)
  const timer = setTimeout(wake, ms).unref()
  return () => clearTimeout(timer)
}

const invalid = (message: string): FluxGateError => new FluxGateError('FLUXGATE_ARGUMENT_INVALID', message)
