import { hashSlot } from './hash-slot.js'

const slots = 16_384

let tags: readonly string[] | undefined

/** By slot: a short text that is in it, for keys that have to be where others are. Always the same ones. */
export function slotTag(slot: number): string {
  tags ??= findTags()
  return tags[slot] as string
}

function findTags(): string[] {
  const found = new Array<string>(slots)
  for (let i = 0, left = slots; left > 0; i++) {
    const text = i.toString(36)
    const slot = hashSlot(text)
    if (found[slot] !== undefined) continue
    found[slot] = text
    left--
  }
  return found
}
