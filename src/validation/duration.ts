const unitTicks: Readonly<Record<string, bigint>> = {
  w: 604_800_000_000n,
  d: 86_400_000_000n,
  h: 3_600_000_000n,
  m: 60_000_000n,
  s: 1_000_000n,
  ms: 1_000n,
}

/** The syntax of a duration with a unit: `500ms`, `1.5s`, `1 m`, `1 minute`. */
export const durationPattern = '^([0-9]+(?:\\.[0-9]+)?) ?(ms|s|m|h|d|w|(?:millisecond|second|minute|hour|day|week)s?)$'
const durationSyntax = new RegExp(durationPattern)

/** The forms of a duration that must have a unit. */
export const unitForms = 'text with a unit such as 500ms, 1.5s, 1m, 2h, 30d, 1w or 1 minute'
export const durationForms = 'a number of seconds, or text such as 500ms, 1.5s, 1m, 2h, 30d'

/**
 * Converts `"1m"`, `"500ms"` or a number of seconds to ticks (whole microseconds). Returns `undefined` for anything else.
 * The decimal digits are converted exactly: 0.1 s is 100,000 ticks, and a duration with a fraction of a tick is rejected, not rounded.
 */
export function durationTicks(value: unknown): number | undefined {
  if (typeof value === 'number') return value < 0 ? undefined : secondsTicks(value)
  if (typeof value !== 'string' || value.length > 40) return undefined
  const [, digits, unit] = durationSyntax.exec(value) ?? []
  return digits === undefined || unit === undefined ? undefined : toTicks(digits, ticksOf(unit))
}

/** A unit that is spelled out has the first letter of its symbol, except milliseconds. */
const ticksOf = (unit: string): bigint =>
  (unitTicks[unit] ?? unitTicks[unit.startsWith('milli') ? 'ms' : unit.charAt(0)]) as bigint

const secondsTicks = (seconds: number): number | undefined => toTicks(String(seconds), 1_000_000n)

function toTicks(decimal: string, unit: bigint): number | undefined {
  // NaN, Infinity and numbers that print with an exponent do not match.
  const [, whole, fraction = ''] = /^(\d+)(?:\.(\d+))?$/.exec(decimal) ?? []
  if (whole === undefined) return undefined
  const numerator = BigInt(whole + fraction) * unit
  const denominator = 10n ** BigInt(fraction.length)
  if (numerator % denominator !== 0n) return undefined
  const ticks = Number(numerator / denominator)
  return Number.isSafeInteger(ticks) ? ticks : undefined
}
