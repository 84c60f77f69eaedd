/**
 * Writes the `RateLimit` of one policy: `"api.100-per-1m";r=99;t=60`. It does so with every request, and so from the codes of
 * the characters, most of which stay the same: to join texts costs a busy server as much as the decision.
 */
export class RateLimitText {
  readonly #opening: string
  readonly #codes: number[]

  constructor(policy: string) {
    const opening = `${policy};r=`
    this.#opening = opening
    this.#codes = Array.from({ length: opening.length }, (_, at) => opening.charCodeAt(at))
  }

  write(left: number, seconds: number): string {
    if (!Number.isSafeInteger(left) || !Number.isSafeInteger(seconds)) return `${this.#opening}${left};t=${seconds}`
    const codes = this.#codes
    const behindLeft = this.#opening.length + digitsOf(left)
    const end = behindLeft + 3 + digitsOf(seconds)
    if (codes.length !== end) resize(codes, end)
    putDigits(codes, behindLeft, left)
    codes[behindLeft] = semicolon
    codes[behindLeft + 1] = letterT
    codes[behindLeft + 2] = equals
    putDigits(codes, end, seconds)
    return String.fromCharCode.apply(null, codes)
  }

  /** What it has written as `left`. */
  leftIn(text: string): string {
    const start = this.#opening.length
    return text.slice(start, text.indexOf(';', start))
  }
}

const semicolon = 0x3b
const letterT = 0x74
const equals = 0x3d
const zero = 0x30

function digitsOf(count: number): number {
  let digits = 1
  for (let power = 10; power <= count; power *= 10) digits += 1
  return digits
}

function putDigits(codes: number[], end: number, count: number): void {
  let rest = count
  for (let at = end - 1; ; at--) {
    const tens = Math.floor(rest / 10)
    codes[at] = zero + (rest - tens * 10)
    if (tens === 0) return
    rest = tens
  }
}

/** One by one: an array that once had holes is slower for ever. */
function resize(codes: number[], length: number): void {
  while (codes.length < length) codes.push(zero)
  codes.length = length
}
