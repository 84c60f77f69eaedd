/** What `probe` gives as soon as it is neither undefined nor false; an error counts as "not yet". */
export async function eventually<T>(
  what: string,
  probe: () => Promise<T | undefined | false> | T | undefined | false,
  timeoutMs = 15_000,
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
