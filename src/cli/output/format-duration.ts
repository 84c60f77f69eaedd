const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1],
  ['µs', 0.001],
] as const

/** Formats milliseconds for display, with three significant digits or two units: `0`, `8.33ms`, `1.5s`, `1m40s`, `2d`. */
export function formatDuration(ms: number): string {
  if (ms === 0) return '0'
  const place = units.findIndex(([, size]) => ms >= size)
  const [unit, size] = units[place] ?? units[5]
  if (size < 60_000) return `${toThreeDigits(ms / size)}${unit}`
  const [nextUnit, nextSize] = units[place + 1] as (typeof units)[number]
  const inNext = Math.round(ms / nextSize)
  const perUnit = size / nextSize
  const rest = inNext % perUnit
  return `${Math.floor(inNext / perUnit)}${unit}${rest === 0 ? '' : `${rest}${nextUnit}`}`
}

const toThreeDigits = (value: number): number => Number(value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2))
