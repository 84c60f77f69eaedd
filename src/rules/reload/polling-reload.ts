import type { Clock } from '../../core/clock.js'
import { FluxGateError } from '../../core/errors.js'
import type { ReloadStrategy } from '../../core/rule-set-provider.js'

export interface PollingOptions {
  /** From the end of one reload to the start of the next, on average. */
  readonly intervalMs?: number
  /** The part of the interval by which a wait may differ from it, either way; keeps a fleet from asking in step. */
  readonly jitter?: number
  readonly random?: () => number
  readonly clock?: Clock
}

const longestTimerMs = 2 ** 31 - 1

export function pollingReload(options: PollingOptions = {}): ReloadStrategy {
  const { intervalMs = 30_000, jitter = 0.1, random = Math.random, clock } = options
  if (!(intervalMs >= 1 && intervalMs <= longestTimerMs / 2)) {
    throw invalid(`intervalMs is ${intervalMs}; allowed: 1 to ${Math.floor(longestTimerMs / 2)} milliseconds.`)
  }
  if (!(jitter >= 0 && jitter <= 1)) throw invalid(`jitter is ${jitter}; allowed: 0 to 1.`)
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
        // Whatever came of one reload, the next one comes.
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

/** The clock's own timer if it has one; else a real one that does not keep the process alive. */
export function wakeAfter(ms: number, clock: Clock | undefined, wake: () => void): () => void {
  if (clock?.schedule) return clock.schedule(ms, wake)
  const timer = setTimeout(wake, ms).unref()
  return () => clearTimeout(timer)
}

const invalid = (message: string): FluxGateError => new FluxGateError('FLUXGATE_ARGUMENT_INVALID', message)
