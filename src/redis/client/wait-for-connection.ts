import { Deadlines } from '../../core/scheduling/deadlines.js'

/**
 * Resolves when `connected` resolves or after `withinMs`, whichever is first. Time in which the event loop was blocked does
 * not count. Rejects if `connected` rejects, which means that waiting cannot help.
 */
export function waitForConnection(connected: Promise<unknown>, withinMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const deadlines = new Deadlines(withinMs)
    const deadline = deadlines.begin(resolve)
    connected.then(() => resolve(), reject).finally(() => deadlines.end(deadline))
  })
}
