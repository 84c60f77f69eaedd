/** Returns the result of `make`. If it throws, calls `close` first: an open connection would keep the process alive. */
export function closeOnError<T>(close: () => Promise<void>, make: () => T): T {
  try {
    return make()
  } catch (error) {
    close().catch(() => {})
    throw error
  }
}
