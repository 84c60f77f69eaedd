const unitTicks = new Map([
  ['d', 86_400_000_000n],
  ['h', 3_600_000_000n],
  ['m', 60_000_000n],
  ['s', 1_000_000n],
  ['ms', 1_000n],
])

/** Text that stands for a duration. */
export const durationPattern = '^([0-9]+(?:\\.[0-9]+)?) ?(ms|s|m|h|d)$'
const durationText = new RegExp(durationPattern)

export const durationForms = 'a number of seconds, or text such as 500ms, 1.5s, 1m, 2h, 30d'

/**
 * Ticks (whole microseconds) of `"1m"`, `"500ms"` or a number of seconds; `undefined` on anything else. The decimal digits are read as they are
 * written, so 0.1 s is exactly 100 000 ticks and a fraction of a tick is noticed rather than rounded away.
 */
export function durationTicks(value: unknown): number | undefined {
  if (typeof value === 'number') return value < 0 ? undefined : secondsTicks(value)
  if (typeof value !== 'string' || value.length > 40) return undefined
  const [, digits, unit] = durationText.exec(value) ?? []
  return digits === undefined || unit === undefined ? undefined : scaled(digits, unitTicks.get(unit) as bigint)
}

const secondsTicks = (seconds: number): number | undefined => scaled(String(seconds), 1_000_000n)

function scaled(decimal: string, unit: bigint): number | undefined {
  // NaN, Infinity and numbers so large or small that they print with an exponent do not match.
  const [, whole, fraction = ''] = /^(\d+)(?:\.(\d+))?$/.exec(decimal) ?? []
  if (whole === undefined) return undefined
  const numerator = BigInt(whole + fraction) * unit
  const denominator = 10n ** BigInt(fraction.length)
  if (numerator % denominator !== 0n) return undefined
  const ticks = Number(numerator / denominator)
  return Number.isSafeInteger(ticks) ? ticks : undefined
}
