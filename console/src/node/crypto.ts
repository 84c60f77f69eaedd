/** Stands in for `node:crypto` in the browser: SHA-256 for digests of long keys and rules, which are needed synchronously. */
const round = new Uint32Array(64)
const initial = new Uint32Array(8)
{
  let count = 0
  for (let candidate = 2; count < 64; candidate++) {
    let isPrime = true
    for (let factor = 2; factor * factor <= candidate && isPrime; factor++) isPrime = candidate % factor !== 0
    if (!isPrime) continue
    if (count < 8) initial[count] = (Math.sqrt(candidate) % 1) * 2 ** 32
    round[count++] = (Math.cbrt(candidate) % 1) * 2 ** 32
  }
}

const rotate = (value: number, by: number): number => (value >>> by) | (value << (32 - by))

export function sha256(data: Uint8Array): Uint8Array {
  const padded = new Uint8Array(((data.length + 72) >> 6) << 6)
  padded.set(data)
  padded[data.length] = 0x80
  const view = new DataView(padded.buffer)
  view.setUint32(padded.length - 8, Math.floor(data.length / 2 ** 29))
  view.setUint32(padded.length - 4, data.length << 3)
  const state = initial.slice()
  const words = new Uint32Array(64)
  for (let start = 0; start < padded.length; start += 64) {
    for (let i = 0; i < 16; i++) words[i] = view.getUint32(start + 4 * i)
    for (let i = 16; i < 64; i++) {
      const w15 = words[i - 15] as number
      const w2 = words[i - 2] as number
      const s0 = rotate(w15, 7) ^ rotate(w15, 18) ^ (w15 >>> 3)
      const s1 = rotate(w2, 17) ^ rotate(w2, 19) ^ (w2 >>> 10)
      words[i] = (words[i - 16] as number) + s0 + (words[i - 7] as number) + s1
    }
    let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number]
    for (let i = 0; i < 64; i++) {
      const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + (round[i] as number) + (words[i] as number)) | 0
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
    for (const [i, value] of [a, b, c, d, e, f, g, h].entries()) state[i] = (state[i] as number) + value
  }
  const digest = new Uint8Array(32)
  for (const [i, value] of state.entries()) new DataView(digest.buffer).setUint32(4 * i, value)
  return digest
}

const hex = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '')
}

export function createHash(_algorithm: 'sha256') {
  let text = ''
  return {
    update(part: string) {
      text += part
      return this
    },
    digest(encoding: 'hex' | 'base64url'): string {
      const digest = sha256(new TextEncoder().encode(text))
      return encoding === 'hex' ? hex(digest) : base64url(digest)
    },
  }
}

export const hash = (algorithm: 'sha256', text: string, encoding: 'hex' | 'base64url'): string =>
  createHash(algorithm).update(text).digest(encoding)

export const randomBytes = (length: number) => {
  const bytes = crypto.getRandomValues(new Uint8Array(length))
  return { toString: (_encoding: 'hex'): string => hex(bytes) }
}
