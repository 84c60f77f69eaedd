const units = {
  ms: 1,
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  week: 604_800_000,
  year: 31_557_600_000,
}

/** The unit that a word such as `s`, `mins` or `hours` means. */
function unitOf(word: string): number | undefined {
  if (word === '' || /^(ms|msecs?|milliseconds?)$/.test(word)) return units.ms
  if (/^(s|secs?|seconds?)$/.test(word)) return units.second
  if (/^(m|mins?|minutes?)$/.test(word)) return units.minute
  if (/^(h|hrs?|hours?)$/.test(word)) return units.hour
  if (/^(d|days?)$/.test(word)) return units.day
  if (/^(w|weeks?)$/.test(word)) return units.week
  return /^(y|yrs?|years?)$/.test(word) ? units.year : undefined
}

/** Parses text such as `1 minute` to milliseconds; undefined if it is no duration. */
export function parseDuration(text: string): number | undefined {
  const [, amount = '', word = ''] = /^\s*(\d+(?:\.\d+)?|\.\d+)\s*([a-z]*)\s*$/i.exec(text) ?? []
  const unit = unitOf(word.toLowerCase())
  return amount === '' || unit === undefined ? undefined : Number(amount) * unit
}

/** Formats milliseconds in words, rounded to the largest unit, such as `1 minute` and `2 seconds`. */
export function formatDuration(ms: number): string {
  for (const name of ['year', 'day', 'hour', 'minute', 'second'] as const) {
    const count = Math.round(ms / units[name])
    if (ms >= units[name]) return `${count} ${name}${count === 1 ? '' : 's'}`
  }
  return `${ms} ms`
}
