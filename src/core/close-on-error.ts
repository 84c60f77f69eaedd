/** What `make` gives. If it throws, what was opened for it is closed: nobody else would, and it keeps a process from ending. */
export function orClose<T>(close: () => Promise<void>, make: () => T): T {
  try {
    return make()
  } catch (error) {
    close().catch(() => {})
    throw error
  }
}
