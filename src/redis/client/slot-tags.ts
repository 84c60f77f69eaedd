import { checksum } from './hash-slot.js'

const slots = 16_384
const digits = '0123456789abcdefghijklmnopqrstuvwxyz'

/** The tag of each slot as a number: the smallest whose base-36 digits hash to the slot. */
let numbers: Uint32Array | undefined
const tags = new Array<string | undefined>(slots)

/**
 * Returns a short hash tag for a slot, to place keys next to other keys. Tags never change, because stored keys contain
 * them.
 */
export function slotTag(slot: number): string {
  numbers ??= findNumbers()
  tags[slot] ??= numbers[slot]?.toString(36)
  return tags[slot] as string
}

/**
 * Hashes numbers in base 36 until every slot has one. The checksum of a number is derived from the checksum of its leading
 * digits, which keeps this to a few milliseconds: a decision with a deadline waits for it.
 */
function findNumbers(): Uint32Array {
  const found = new Uint32Array(slots)
  const isFound = new Uint8Array(slots)
  // The last slot is reached at the number 87,572, so the array is large enough.
  const checksums = new Uint16Array(8 * slots)
  for (let number = 0, left = slots; left > 0; number++) {
    const before = number < 36 ? 0 : (checksums[Math.trunc(number / 36)] as number)
    const sum = checksum(before, digits.charCodeAt(number % 36))
    checksums[number] = sum
    const slot = sum % slots
    if (isFound[slot] === 1) continue
    isFound[slot] = 1
    found[slot] = number
    left--
  }
  return found
}
