const isoPattern =
  /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2})?)(?:[.,](\d{1,9}))?)?\s*(Z|UTC|[+-]\d{2}:?\d{2})?$/i
const clfPattern = /^(\d{2})\/([A-Z][a-z]{2})\/(\d{4}):(\d{2}:\d{2}:\d{2})(?:[.,](\d{1,9}))? ([+-]\d{2})(\d{2})$/
const numberPattern = /^\d{1,19}(?:\.\d+)?$/
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/**
 * Parses the usual notations of a timestamp to ticks (microseconds since the epoch). Returns undefined for anything else.
 *
 * A number is in milliseconds since the epoch. From 10⁹ to 10¹¹, that would be a time in 1970 to 1973, so the number is in
 * seconds. Larger numbers than 10¹⁴ and 10¹⁷ are in microseconds and nanoseconds. Below 10⁹, the milliseconds are relative to
 * an arbitrary start.
 */
export function parseTimestamp(value: unknown): number | undefined {
  if (typeof value === 'number') return epochTicks(value)
  if (typeof value !== 'string') return undefined
  const text = value.trim()
  if (numberPattern.test(text)) return epochTicks(Number(text))
  return parseIso(text) ?? parseLogTime(text)
}

function epochTicks(value: number): number | undefined {
  if (!(value >= 0)) return undefined
  if (value < 1e9) return Math.round(value * 1e3)
  if (value < 1e11) return Math.round(value * 1e6)
  if (value < 1e14) return Math.round(value * 1e3)
  if (value < 1e17) return valid(Math.round(value))
  return valid(Math.round(value / 1e3))
}

/** A time without a zone is UTC, so that the result does not depend on the machine. */
function parseIso(text: string): number | undefined {
  const match = isoPattern.exec(text)
  if (!match) return undefined
  const [, date, time = '00:00', fraction, zone = 'Z'] = match
  return withFraction(Date.parse(`${date}T${time}${zoneOf(zone)}`), fraction)
}

const zoneOf = (zone: string): string => {
  if (/^[zu]/i.test(zone)) return 'Z'
  return zone.includes(':') ? zone : `${zone.slice(0, 3)}:${zone.slice(3)}`
}

let lastText = ''
let lastTicks: number | undefined

/** Parses the time in access logs: `10/Oct/2000:13:55:36 -0700`. Lines of the same second have the same text. */
function parseLogTime(text: string): number | undefined {
  if (text === lastText) return lastTicks
  lastText = text
  lastTicks = logTicks(text)
  return lastTicks
}

function logTicks(text: string): number | undefined {
  const match = clfPattern.exec(text)
  if (!match) return undefined
  const [, day, name = '', year, time, fraction, zoneHours, zoneMinutes] = match
  const month = String(months.indexOf(name) + 1).padStart(2, '0')
  return withFraction(Date.parse(`${year}-${month}-${day}T${time}${zoneHours}:${zoneMinutes}`), fraction)
}

/** The fraction is parsed separately, because a Date would truncate it to milliseconds. */
function withFraction(epochMs: number, fraction = ''): number | undefined {
  return valid(epochMs * 1e3 + Number(fraction.slice(0, 6).padEnd(6, '0')))
}

const valid = (ticks: number): number | undefined => (ticks >= 0 && ticks < 2 ** 53 ? ticks : undefined)
