/**
 * Texts and numbers as bytes that are in the same order as they are themselves, one after the other in one member of a
 * sorted set. UTF-8 keeps the order of code points; ends have to be marked such that "ab" follows "a" whatever comes next.
 */
const zero = Buffer.from([0])
const escapedZero = Buffer.from([0, 255])
export const endOfText = Buffer.from([0, 1])

/** A zero byte becomes 0 255, so that 0 1 can only be an end. */
export function textBytes(text: string): Buffer {
  const bytes = Buffer.from(text)
  return bytes.includes(0) ? replaceAll(bytes, zero, escapedZero) : bytes
}

export const textOfBytes = (bytes: Buffer): string =>
  (bytes.includes(0) ? replaceAll(bytes, escapedZero, zero) : bytes).toString()

function replaceAll(bytes: Buffer, from: Buffer, to: Buffer): Buffer {
  const parts: Buffer[] = []
  let start = 0
  for (let found = bytes.indexOf(from); found >= 0; found = bytes.indexOf(from, start)) {
    parts.push(bytes.subarray(start, found), to)
    start = found + from.length
  }
  return Buffer.concat([...parts, bytes.subarray(start)])
}

/** Positive numbers with their sign bit set, negative ones turned over, so that bytes compare as numbers do. */
export function numberBytes(value: number): Buffer {
  const bytes = Buffer.alloc(8)
  // There is one zero.
  bytes.writeDoubleBE(value === 0 ? 0 : value)
  if (bytes[0] !== undefined && bytes[0] < 128) bytes[0] |= 128
  else for (const [i, byte] of bytes.entries()) bytes[i] = 255 - byte
  return bytes
}

/**
 * The first bytes behind all that begin with `prefix`. A 255 has no next one, so that it is the byte before it that
 * counts; behind nothing but 255 there is nothing more.
 */
export function behindPrefix(prefix: Buffer): Buffer | undefined {
  for (let i = prefix.length - 1; i >= 0; i--) {
    const byte = prefix[i] as number
    if (byte < 255) return Buffer.from([...prefix.subarray(0, i), byte + 1])
  }
  return undefined
}
