import { Deadlines } from '../../core/scheduling/deadlines.js'

/**
 * Resolves once `connected` does, or when `withinMs` have passed in which the event loop could run. Rejects as `connected`
 * does: when it is known that waiting will not help.
 */
export function connectedWithin(connected: Promise<unknown>, withinMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const deadlines = new Deadlines(withinMs)
    const deadline = deadlines.begin(resolve)
    connected.then(() => resolve(), reject).finally(() => deadlines.end(deadline))
  })
}
