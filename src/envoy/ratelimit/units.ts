/** The units of time of Envoy's limits. A month has 30 days and a year 365, as in envoyproxy/ratelimit. */
const secondMs = 1_000
const dayMs = 86_400 * secondMs

interface Unit {
  readonly name: string
  /** Its number in envoy.type.v3.RateLimitUnit and in RateLimitResponse. */
  readonly number: number
  readonly windowMs: number
}

/** The longest first. */
const units: readonly Unit[] = [
  { name: 'year', number: 6, windowMs: 365 * dayMs },
  { name: 'month', number: 5, windowMs: 30 * dayMs },
  { name: 'week', number: 7, windowMs: 7 * dayMs },
  { name: 'day', number: 4, windowMs: dayMs },
  { name: 'hour', number: 3, windowMs: 3_600 * secondMs },
  { name: 'minute', number: 2, windowMs: 60 * secondMs },
  { name: 'second', number: 1, windowMs: secondMs },
]

const maxWindowMs = 366 * dayMs

/** The window of a number of units; undefined if there is no such unit, or if the window is longer than a band allows. */
export function windowOfUnit(number: number, multiplier: number): number | undefined {
  const unit = units.find((one) => one.number === number)
  const windowMs = (unit?.windowMs ?? 0) * multiplier
  return windowMs > 0 && windowMs <= maxWindowMs ? windowMs : undefined
}

/** Names of the units, with their windows. */
export const windowByUnit: ReadonlyMap<string, number> = new Map(units.map(({ name, windowMs }) => [name, windowMs]))

export interface UnitOfWindow {
  /** 0 (UNKNOWN) if no unit fits. */
  readonly unit: number
  readonly unitMultiplier: number
}

const unknown: UnitOfWindow = { unit: 0, unitMultiplier: 1 }

/** The window as a multiple of the longest unit that divides it. */
export function unitOfWindow(windowMs: number): UnitOfWindow {
  if (windowMs <= 0) return unknown
  const unit = units.find((one) => windowMs % one.windowMs === 0)
  return unit === undefined ? unknown : { unit: unit.number, unitMultiplier: windowMs / unit.windowMs }
}
