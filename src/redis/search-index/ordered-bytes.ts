/**
 * Order-preserving encoding of texts and numbers, concatenated in one member of a sorted set. UTF-8 keeps the order of code
 * points. A terminator makes "ab" sort after "a" regardless of the bytes that follow.
 */
const zero = Buffer.from([0])
const escapedZero = Buffer.from([0, 255])
export const endOfText = Buffer.from([0, 1])

/** Encodes a zero byte as 0 255, so that 0 1 is always the terminator. */
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

/** Sets the sign bit of positive numbers and inverts negative numbers, so that bytes compare like the numbers. */
export function numberBytes(value: number): Buffer {
  const bytes = Buffer.alloc(8)
  // -0 and 0 have the same encoding.
  bytes.writeDoubleBE(value === 0 ? 0 : value)
  if (bytes[0] !== undefined && bytes[0] < 128) bytes[0] |= 128
  else for (const [i, byte] of bytes.entries()) bytes[i] = 255 - byte
  return bytes
}

/**
 * Returns the smallest bytes after all byte strings that start with `prefix`. A byte of 255 has no successor, so the byte
 * before it is incremented. Returns `undefined` if all bytes are 255.
 */
export function endOfPrefix(prefix: Buffer): Buffer | undefined {
  for (let i = prefix.length - 1; i >= 0; i--) {
    const byte = prefix[i] as number
    if (byte < 255) return Buffer.from([...prefix.subarray(0, i), byte + 1])
  }
  return undefined
}
