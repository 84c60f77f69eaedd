import { builtinModule } from './builtin-module.js'

const crypto = builtinModule('node:crypto')

/** The SHA-256 digest of a text in UTF-8. */
export const sha256: (text: string, encoding: 'hex' | 'base64url') => string =
  crypto === undefined
    ? (text, encoding) => encoded(portableSha256(new TextEncoder().encode(text)), encoding)
    : (text, encoding) => crypto.createHash('sha256').update(text).digest(encoding)

function encoded(digest: Uint8Array, encoding: 'hex' | 'base64url'): string {
  if (encoding === 'hex') return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')
  const base64 = btoa(String.fromCharCode(...digest))
  return base64.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}

/** The first `count` primes, whose roots give the constants of FIPS 180-4. */
function primes(count: number): number[] {
  const found: number[] = []
  for (let candidate = 2; found.length < count; candidate++)
    if (found.every((prime) => candidate % prime !== 0)) found.push(candidate)
  return found
}

/** The first 32 bits of the fraction. */
const fractionBits = (root: number): number => ((root - Math.floor(root)) * 2 ** 32) | 0

let tables: { readonly start: readonly number[]; readonly rounds: readonly number[] } | undefined

const rotate = (word: number, bits: number): number => (word >>> bits) | (word << (32 - bits))

/** SHA-256 of FIPS 180-4, for runtimes whose only digest is asynchronous. */
export function portableSha256(message: Uint8Array): Uint8Array {
  tables ??= {
    start: primes(8).map((p) => fractionBits(Math.sqrt(p))),
    rounds: primes(64).map((p) => fractionBits(Math.cbrt(p))),
  }
  const length = (((message.length + 8) >> 6) + 1) << 6
  const padded = new Uint8Array(length)
  padded.set(message)
  padded[message.length] = 0x80
  const view = new DataView(padded.buffer)
  view.setUint32(length - 8, Math.floor(message.length / 2 ** 29))
  view.setUint32(length - 4, message.length << 3)
  const hash = [...tables.start]
  const words = new Int32Array(64)
  for (let at = 0; at < length; at += 64) {
    for (let i = 0; i < 16; i++) words[i] = view.getInt32(at + 4 * i)
    addBlock(hash, words, tables.rounds)
  }
  const digest = new DataView(new ArrayBuffer(32))
  for (const [i, word] of hash.entries()) digest.setInt32(4 * i, word)
  return new Uint8Array(digest.buffer)
}

/** Adds one block, whose 16 words are in `words`, to the hash. */
function addBlock(hash: number[], words: Int32Array, rounds: readonly number[]): void {
  for (let i = 16; i < 64; i++) {
    const before = words[i - 15] as number
    const last = words[i - 2] as number
    const s0 = rotate(before, 7) ^ rotate(before, 18) ^ (before >>> 3)
    const s1 = rotate(last, 17) ^ rotate(last, 19) ^ (last >>> 10)
    words[i] = (words[i - 16] as number) + s0 + (words[i - 7] as number) + s1
  }
  let [a, b, c, d, e, f, g, h] = hash as [number, number, number, number, number, number, number, number]
  for (let i = 0; i < 64; i++) {
    const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + (rounds[i] as number) + (words[i] as number)) | 0
    const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0
    h = g
    g = f
    f = e
    e = (d + t1) | 0
    d = c
    c = b
    b = a
    a = (t1 + t2) | 0
  }
  const added = [a, b, c, d, e, f, g, h]
  for (let i = 0; i < 8; i++) hash[i] = ((hash[i] as number) + (added[i] as number)) | 0
}
