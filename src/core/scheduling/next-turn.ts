/** Calls back in the next turn of the event loop. Runtimes without `setImmediate` use a timer. */
export const nextTurn: (callback: () => void) => void =
  typeof setImmediate === 'function'
    ? (callback) => void setImmediate(callback)
    : (callback) => void setTimeout(callback, 0)
