import { describe, expect, it } from 'vitest'
import { type Random, seededRandom } from '../../core/seeded-random.js'
import { forwardedElements, forwardedValue, isWellFormed } from './forwarded-header.js'

const parsed = (text: string) => [...forwardedElements(text)].map((element) => element && Object.fromEntries(element))

describe('forwardedElements', () => {
  it.each([
    ['', []],
    [' , ,', []],
    ['for=a', [{ for: 'a' }]],
    ['For=a ; PROTO=https;', [{ for: 'a', proto: 'https' }]],
    ['for=a, for=b', [{ for: 'b' }, { for: 'a' }]],
    ['for="[2001:db8::1]:4711"', [{ for: '[2001:db8::1]:4711' }]],
    ['host="a,b;c=d\\"e\\\\";for=x', [{ host: 'a,b;c=d"e\\', for: 'x' }]],
    ['for=a b', [undefined]],
    ['for', [undefined]],
    ['for=', [undefined]],
    ['=a', [undefined]],
    ['for="a"b', [undefined]],
    ['for=a;for=b', [undefined]],
    ['for=a\u0001', [undefined]],
    ['for="open, for=b', [{ for: 'b' }, undefined]],
    ['x=", for=b;y="c"', [{ for: 'b', y: 'c' }, undefined]],
  ])('parses %j from the right', (text, elements) => {
    expect(parsed(text)).toEqual(elements)
    expect(isWellFormed(text)).toBe(!(elements as unknown[]).includes(undefined))
  })

  it('takes linear time for hostile text', () => {
    for (const unit of ['"', ',', '\\', '",', '\\"', 'a="\\', 'a=a;'])
      expect(parsed(unit.repeat(200_000)).length).toBeLessThanOrEqual(200_001)
  })
})

/** From the environment to replay a failed run; otherwise a new one, which every assertion names. */
const seed = Number(process.env.FLUXGATE_TEST_SEED ?? Date.now() % 2 ** 31)

const alphabet = [...'ab1.:[]_-", ;=\\\t']
const randomText = (random: Random, length: number): string =>
  Array.from({ length }, () => alphabet[Math.floor(random() * alphabet.length)]).join('')

describe(`2000 random headers with FLUXGATE_TEST_SEED=${seed}`, () => {
  const random = seededRandom(seed)

  it('are parsed from the right, regardless of forged elements before them', () => {
    for (let run = 0; run < 2_000; run++) {
      const written = Array.from({ length: 1 + Math.floor(random() * 3) }, () => ({
        for: randomText(random, 1 + Math.floor(random() * 6)),
        host: randomText(random, Math.floor(random() * 12)),
      }))
      const text = written.map((one) => `for=${forwardedValue(one.for)};host=${forwardedValue(one.host)}`).join(', ')
      expect(parsed(text), `seed ${seed}, run ${run}: ${text}`).toEqual(written.toReversed())
      const forged = `${randomText(random, Math.floor(random() * 20))}, ${text}`
      const fromRight = parsed(forged).slice(0, written.length)
      expect(fromRight, `seed ${seed}, run ${run}: ${forged}`).toEqual(written.toReversed())
    }
  })
})
