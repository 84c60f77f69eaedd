const slots = 16_384

/** The Redis Cluster slot of a key: CRC-16 of the hash tag in its first braces, or of the whole key without a hash tag. */
export function hashSlot(key: string): number {
  const open = key.indexOf('{')
  const close = open < 0 ? -1 : key.indexOf('}', open + 1)
  const tag = Buffer.from(close > open + 1 ? key.slice(open + 1, close) : key)
  return hashSlotOfRange(tag, 0, tag.length)
}

/** Like `hashSlot`, for a binary key. */
export function hashSlotOfBytes(key: Buffer): number {
  const open = key.indexOf('{')
  const close = open < 0 ? -1 : key.indexOf('}', open + 1)
  return close > open + 1 ? hashSlotOfRange(key, open + 1, close) : hashSlotOfRange(key, 0, key.length)
}

/** The slot of a byte range that is a hash tag, or a whole key without one. */
export function hashSlotOfRange(bytes: Buffer, from: number, to: number): number {
  let crc = 0
  for (let at = from; at < to; at++) crc = checksum(crc, bytes[at] as number)
  return crc % slots
}

/** Adds one byte to a CRC-16 checksum. */
export const checksum = (crc: number, byte: number): number =>
  ((crc << 8) ^ (table[(crc >> 8) ^ byte] as number)) & 0xffff

/** CRC-16/XMODEM, as the Redis Cluster specification requires: polynomial 0x1021, initial value 0. */
const table = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
  return crc
})
