/** Stands in for `node:perf_hooks`, `node:net` and `node:util` in the browser: the functions that the simulation needs. */
export const performance = globalThis.performance

export function isIP(text: string): 0 | 4 | 6 {
  const parts = text.split('.')
  if (parts.length === 4) return parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) < 256) ? 4 : 0
  try {
    // The URL parser accepts exactly the valid addresses in brackets.
    return text.includes(':') && new URL(`http://[${text}]`).hostname !== '' ? 6 : 0
  } catch {
    return 0
  }
}

export const isDeepStrictEqual = (one: unknown, other: unknown): boolean =>
  JSON.stringify(one) === JSON.stringify(other)
