import { type Random, seededRandom } from '../../src/core/seeded-random.js'

/** Random choices that depend on nothing but a seed. */
export interface Draw {
  /** An integer from 0 to `below` - 1. */
  int(below: number): number
  chance(probability: number): boolean
  pick<T>(choices: readonly T[]): T
  /** Printable text, which looks like nothing else in a conversation. */
  text(length: number): string
}

export function drawFrom(seed: number, name: string): Draw {
  let mixed = seed
  for (const letter of name) mixed = Math.imul(mixed, 31) + letter.charCodeAt(0)
  const random: Random = seededRandom(mixed)
  const int = (below: number): number => Math.floor(random() * below)
  return {
    int,
    chance: (probability) => random() < probability,
    pick: <T>(choices: readonly T[]): T => choices[int(choices.length)] as T,
    text: (length) => Array.from({ length }, () => String.fromCharCode(97 + int(26))).join(''),
  }
}
