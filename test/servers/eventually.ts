/**
 * Resolves with what `probe` returns once that is neither undefined nor false; an error counts as "not yet". The deadline is
 * shorter than the timeout of a test, so that the message says what was missing.
 */
export async function eventually<T>(
  what: string,
  probe: () => Promise<T | undefined | false> | T | undefined | false,
  timeoutMs = 60_000,
): Promise<T> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    let cause: unknown
    try {
      const found = await probe()
      if (found !== undefined && found !== false) return found
    } catch (error) {
      cause = error
    }
    if (performance.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${what}`, { cause })
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
