/** Converts between instants and the days of a time zone. */
export interface ZonedDays {
  /** The local date at an instant, as the days since 1970-01-01. */
  dayAt(ms: number): number
  /** The first instant of a local day; of the next existing day if the time zone skips it. */
  startOf(day: number): number
}

export const dayMs = 86_400_000

/** True if the runtime knows the IANA time zone. UTC offsets such as `+09:00` are not time zones. */
export function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false
  try {
    new Intl.DateTimeFormat('en-US', { timeZone: name })
    return true
  } catch {
    return false
  }
}

export function zonedDays(timeZone: string): ZonedDays {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    calendar: 'gregory',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })

  /** The local date and time at an instant, as if it were UTC. */
  const localAt = (ms: number): number => {
    const parts: Record<string, string> = {}
    for (const { type, value } of format.formatToParts(ms)) parts[type] = value
    const { year, month, day, hour, minute, second } = parts
    return Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second))
  }
  const offsetAt = (ms: number): number => localAt(ms) - Math.floor(ms / 1_000) * 1_000

  /** The only change of the offset between two instants. */
  const changeBetween = (from: number, to: number): number => {
    const before = offsetAt(from)
    let [low, high] = [from, to]
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2)
      if (offsetAt(middle) === before) low = middle
      else high = middle
    }
    return high
  }

  return {
    dayAt: (ms) => Math.floor(localAt(ms) / dayMs),

    startOf(day) {
      const midnight = day * dayMs
      // Offsets are less than a day, so the local midnight is between these instants.
      const [from, to] = [midnight - dayMs, midnight + dayMs]
      const candidates = [midnight - offsetAt(from), midnight - offsetAt(to)].filter((ms) => localAt(ms) === midnight)
      // If clocks go back over midnight, the day starts with the first of two midnights.
      if (candidates.length > 0) return Math.min(...candidates)
      // Clocks skip midnight, so the day starts when they go forward.
      return changeBetween(from, to)
    },
  }
}
