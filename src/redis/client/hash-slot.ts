/** Which of a cluster's 16384 slots a key lives in: CRC-16 of what is between its first braces, or of all of it. */
const slots = 16_384

export function hashSlot(key: string): number {
  const open = key.indexOf('{')
  const close = open < 0 ? -1 : key.indexOf('}', open + 1)
  const tag = Buffer.from(close > open + 1 ? key.slice(open + 1, close) : key)
  return hashSlotOfRange(tag, 0, tag.length)
}

/** The same of a key that need not be text. */
export function hashSlotOfBytes(key: Buffer): number {
  const open = key.indexOf('{')
  const close = open < 0 ? -1 : key.indexOf('}', open + 1)
  return close > open + 1 ? hashSlotOfRange(key, open + 1, close) : hashSlotOfRange(key, 0, key.length)
}

/** The same of some bytes that have no braces, or are what is between them. */
export function hashSlotOfRange(bytes: Buffer, from: number, to: number): number {
  let crc = 0
  for (let at = from; at < to; at++) crc = checksum(crc, bytes[at] as number)
  return crc % slots
}

/** The checksum of some bytes and one more. */
export const checksum = (crc: number, byte: number): number =>
  ((crc << 8) ^ (table[(crc >> 8) ^ byte] as number)) & 0xffff

/** The variant that Redis names in its specification: polynomial 0x1021, starting from 0. */
const table = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
  return crc
})
