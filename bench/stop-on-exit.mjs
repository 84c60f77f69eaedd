// @ts-check
/** Stops child processes when this process exits, even after an error in the middle of a measurement. */

/** @type {Set<() => void>} */
const stops = new Set()
process.once('exit', () => {
  for (const stop of stops) stop()
})

/** @returns {() => void} stops it now */
export function stopOnExit(/** @type {() => void} */ stop) {
  stops.add(stop)
  return () => {
    stops.delete(stop)
    stop()
  }
}
