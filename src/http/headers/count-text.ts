import { keepingLatest } from './latest-text.js'

const units = Array.from({ length: 1_000 }, (_, count) => String(count).padStart(3, '0'))
const thousandsText = keepingLatest(String)

/**
 * A number as text. Of counts in a row all but the last three digits are mostly the same, and putting them before those is
 * cheaper than what the engine does to write a number that it has not written lately.
 */
export function countText(count: number): string {
  if (count < 1_000 || !Number.isSafeInteger(count)) return String(count)
  const rest = count % 1_000
  return thousandsText((count - rest) / 1_000) + units[rest]
}
