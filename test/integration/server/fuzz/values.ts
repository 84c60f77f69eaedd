import type { Random } from '../../../../src/core/seeded-random.js'

export const oneOf = <T>(random: Random, choices: readonly T[]): T =>
  choices[Math.floor(random() * choices.length)] as T

const oddTexts = [
  '',
  ' ',
  'a',
  'null',
  '__proto__',
  'constructor',
  '../../etc/passwd',
  '%00',
  '\u0000',
  '\r\nSet-Cookie: a=b',
  '<script>alert(1)</script>',
  '$(reboot)',
  "'; DROP TABLE rules; --",
  '😀'.repeat(20),
  '\ud800',
  'ﷺ\u202e\u2028',
  'é'.normalize('NFD'),
  '٣',
  '10.0.0.0/8',
  '2001:db8::1',
  '2099-01-01T00:00:00Z',
  '1m',
  'TOKEN_BUCKET',
  'x'.repeat(300),
  'y'.repeat(20_000),
]
const oddNumbers = [
  0,
  -0,
  1,
  -1,
  0.5,
  1e9,
  1e9 + 1,
  2 ** 53,
  2 ** 53 + 2,
  -(2 ** 63),
  1e308,
  5e-324,
  1e21,
  100_000,
  366,
]

/** Any JSON as text, including text that `JSON.stringify` would not produce. */
export function anyJson(random: Random, depth = 0): string {
  const kind = Math.floor(random() * (depth > 3 ? 5 : 9))
  if (kind === 0) return 'null'
  if (kind === 1) return random() < 0.5 ? 'true' : 'false'
  if (kind === 2) return random() < 0.1 ? '1e999' : JSON.stringify(oneOf(random, oddNumbers))
  if (kind < 5) return JSON.stringify(oneOf(random, oddTexts))
  if (kind === 5) return list(random, depth)
  if (kind === 8 && random() < 0.1) return deep(random)
  const names = [
    '__proto__',
    'constructor',
    'toString',
    'id',
    'key',
    'bands',
    'rules',
    'permits',
    oneOf(random, oddTexts),
  ]
  const members = Array.from({ length: Math.floor(random() * 4) }, () => {
    const name = oneOf(random, names)
    const value = name === '__proto__' && random() < 0.5 ? '{"polluted":true}' : anyJson(random, depth + 1)
    return `${JSON.stringify(name)}:${value}`
  })
  return `{${members.join(',')}}`
}

function list(random: Random, depth: number): string {
  const length = random() < 0.02 ? 3_000 : Math.floor(random() * 4)
  if (length > 100) return `[${Array.from({ length }, () => anyJson(random, 9)).join(',')}]`
  return `[${Array.from({ length }, () => anyJson(random, depth + 1)).join(',')}]`
}

function deep(random: Random): string {
  const levels = oneOf(random, [50, 99, 100, 101, 500, 50_000])
  return random() < 0.5 ? '['.repeat(levels) + ']'.repeat(levels) : `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`
}

export const anyText = (random: Random): string => oneOf(random, oddTexts)
