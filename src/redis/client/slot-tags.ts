import { checksum } from './hash-slot.js'

const slots = 16_384
const digits = '0123456789abcdefghijklmnopqrstuvwxyz'

/** By slot: the first number whose digits are in it. */
let numbers: Uint32Array | undefined
const texts = new Array<string | undefined>(slots)

/** By slot: a short text that is in it, for keys that have to be where others are. Always the same ones. */
export function slotTag(slot: number): string {
  numbers ??= findNumbers()
  texts[slot] ??= numbers[slot]?.toString(36)
  return texts[slot] as string
}

/**
 * Numbers in base 36, until there is one for every slot. The checksum of a number is that of all but its last digit and one
 * step more, so that this takes a few milliseconds: a decision waits for it, and has a deadline.
 */
function findNumbers(): Uint32Array {
  const found = new Uint32Array(slots)
  const isFound = new Uint8Array(slots)
  // The last slot is found by the number 87 572.
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
