import type { Deadlines } from '../../core/scheduling/deadlines.js'
import { timedOut } from './timed-out.js'

/**
 * A probe with the deadline of a call. The circuit breaker is not involved: an open breaker must not keep a probe from
 * finding out that the store is back, and probes are no evidence about the calls that the breaker counts.
 */
export const boundedProbe =
  (probe: () => Promise<void>, deadlines: Deadlines, timeoutMs: number): (() => Promise<void>) =>
  () =>
    new Promise((resolve, reject) => {
      const deadline = deadlines.begin(() => reject(timedOut('decide', timeoutMs)))
      Promise.resolve()
        .then(probe)
        .finally(() => deadlines.end(deadline))
        .then(resolve, reject)
    })
