/**
 * Any input gives either rules within all limits, or a list of issues with paths.
 * Replay a failure with the printed seed: FLUXGATE_SEED=… npx vitest run malformed-documents
 * FLUXGATE_TEST_DOCUMENTS sets the number of documents.
 */
import { expect, it } from 'vitest'
import { FluxGateError } from '../../core/errors.js'
import { type Band, maxFillTicks, type Rule, type RuleSet } from '../../core/rule.js'
import { seededRandom } from '../../core/seeded-random.js'
import { parseDocument } from '../document/document.js'
import { parseRuleSets } from './parse-rules.js'

const documents = Number(process.env.FLUXGATE_TEST_DOCUMENTS ?? 4_000)
const seed = Number(process.env.FLUXGATE_SEED ?? Date.now() % 2 ** 32)

const yaml = `ruleSets:
  - id: api # the public one
    strategy: first
    rules:
      - &login
        id: login
        path: /login/{user}
        method: [POST, put]
        when: { attributes.tier: [free, 2], clientIp: 10.0.0.0/8, header.x-app: "ios" }
        limitScope: COMPOSITE
        compositeKeyFields: [IP, path.user]
        bands: [{ capacity: 5, window: 1m }, { label: day, capacity: 100, refillSeconds: 86400, refillTokens: 10 }]
        attributes: { owner: "team a", list: [1, null, true] }
      - { id: custom, scope: CUSTOM, keyField: header.X-Tenant, algorithm: sliding-window-log,
          bands: [{ capacity: 10, windowSeconds: 0.5 }], mode: SHADOW, permits: 2, overrides: true }
      - id: leased
        consistency: LEASED
        onLimitExceedPolicy: WAIT_FOR_REFILL
        maxWaitMs: 500
        bands:
          - capacity: 1000
            window: 500ms
            refill: INTERVAL
            algorithm: TOKEN_BUCKET
`
const valid = parseDocument(yaml, 'yaml')
const json = JSON.stringify(valid, null, 1)

const random = seededRandom(seed)
const below = (limit: number) => Math.floor(random() * limit)
const pick = <T>(values: readonly T[]): T => values[below(values.length)] as T

const deep = (levels: number): unknown =>
  levels === 0 ? 'x' : random() < 0.5 ? [deep(levels - 1)] : { a: deep(levels - 1) }
const junk = (): unknown =>
  pick<() => unknown>([
    () =>
      pick([
        null,
        undefined,
        true,
        false,
        '',
        '10',
        'x',
        '*',
        '/',
        '{',
        '/{a}/{a}',
        '1m',
        '-1s',
        'IP',
        'CUSTOM',
        'LEASED',
      ]),
    () => pick([0, -0, 1, -1, 0.5, 1e9, 1e9 + 1, 2 ** 53, 1e308, -1e308, 5e-324, Number.NaN, Number.POSITIVE_INFINITY]),
    () =>
      pick([
        [],
        {},
        [[]],
        [{}],
        [null],
        { a: 1 },
        new Date(0),
        new Date(Number.NaN),
        new Map(),
        10n,
        () => 1,
        Symbol('s'),
        /x/,
      ]),
    () =>
      pick([
        'x'.repeat(129),
        'x'.repeat(100_000),
        '\u0000',
        '\ud800',
        '\u202e',
        '__proto__',
        'constructor',
        '💥'.repeat(50),
      ]),
    () =>
      JSON.parse(
        pick(['{"__proto__":{"polluted":1}}', '{"constructor":{"prototype":{"polluted":1}}}', '{"toString":1}']),
      ),
    () => deep(below(300)),
    () => Array(below(50)).fill(pick([1, {}, 'IP', { id: 'a', bands: [] }])),
    () => structuredClone(valid),
  ])()
const names =
  '__proto__ constructor prototype hasOwnProperty entries id rules ruleSets bands capcity window refill when keyField'
const name = (): string => pick([...names.split(' '), '', 'a b', '\n'])

type Holder = Record<string | number, unknown>
const isHolder = (value: unknown): value is Holder => typeof value === 'object' && value !== null

/** A random nested object or list. */
function holderIn(root: unknown): Holder | undefined {
  let holder = isHolder(root) ? root : undefined
  while (holder !== undefined && random() < 0.8) {
    const below: Holder[] = Object.values(holder).filter(isHolder)
    if (below.length === 0) break
    holder = pick(below)
  }
  return holder
}

const define = (holder: Holder, key: string, value: unknown) =>
  Object.defineProperty(holder, key, { value, writable: true, enumerable: true, configurable: true })

function mutate(root: unknown): unknown {
  if (random() < 0.02) return junk()
  const holder = holderIn(root)
  if (holder === undefined) return root
  const key = pick(Object.keys(holder))
  const change = below(6)
  if (change === 0) define(holder, name(), junk())
  else if (key === undefined) return root
  else if (change === 1) delete holder[key]
  else if (change === 2) define(holder, name(), holder[key])
  else if (change === 3 && Array.isArray(holder)) holder.push(pick([holder[0], {}]))
  else define(holder, key, junk())
  return root
}

const marks =
  '\t " \' { } [ ] : , - ? *login &login !x !!set | > # % @ \\ \0 \ud800 << .nan 1e999 0x1F __proto__: "__proto__":'
const noise = (): string =>
  pick<() => string>([
    () => pick(marks.split(' ')),
    () => `${pick(marks.split(' '))} `,
    () => pick(['\n', '\r', '\n---\n', '\n...\n', '9'.repeat(400)]),
    () => pick(['[', '{"a":', '- ', '? ', 'a: ']).repeat(below(500)),
  ])()

function mutateText(text: string): string {
  const at = below(text.length)
  const end = Math.min(text.length, at + below(pick([2, 10, 200])))
  return pick([
    () => text.slice(0, at) + text.slice(end),
    () => text.slice(0, at) + noise() + text.slice(at),
    () => text.slice(0, at) + noise() + text.slice(end),
    () => text.slice(0, at) + text.slice(at, end).repeat(3) + text.slice(end),
    () => text.slice(0, at),
  ])()
}

const times = <T>(count: number, value: T, change: (value: T) => T): T =>
  count === 0 ? value : times(count - 1, change(value), change)

/** All documents are generated first, because only parsing is under test. */
function malformed(): () => readonly RuleSet[] {
  const changes = 1 + below(5)
  if (random() < 0.6) {
    const document = times(changes, structuredClone(valid), mutate)
    return () => parseRuleSets(document)
  }
  // Parsing YAML takes most of the time.
  const format = random() < 0.3 ? 'yaml' : 'json'
  const text = times(changes, format === 'yaml' ? yaml : json, mutateText)
  return () => parseRuleSets(parseDocument(text, format))
}

const identifier = /^[A-Za-z0-9._:-]{1,128}$/
const isUnique = (values: readonly string[]) => new Set(values).size === values.length

function isLegalBand(band: Band): boolean {
  const { label, algorithm, refill, capacity, refillTokens, windowTicks } = band
  const isBucket = algorithm === 'TOKEN_BUCKET' || algorithm === 'LEAKY_BUCKET'
  return (
    identifier.test(label) &&
    [capacity, refillTokens].every((count) => Number.isInteger(count) && count <= 1e9) &&
    capacity >= 0 &&
    refillTokens >= 1 &&
    Number.isInteger(windowTicks) &&
    windowTicks >= 1_000 &&
    windowTicks <= 31_622_400_000_000 &&
    (refill === 'STEADY' || algorithm === 'TOKEN_BUCKET') &&
    (algorithm !== 'SLIDING_WINDOW_LOG' || capacity <= 100_000) &&
    (!isBucket || (capacity * windowTicks) / refillTokens <= maxFillTicks * (1 + 1e-9))
  )
}

function isLegalRule(rule: Rule): boolean {
  const { id, bands, priority, permits, path, limitScope, compositeKeyFields, keyField, keyResolver } = rule
  return (
    identifier.test(id) &&
    Number.isInteger(priority) &&
    Number.isInteger(permits) &&
    permits >= 1 &&
    path.startsWith('/') &&
    bands.length >= 1 &&
    bands.length <= 8 &&
    bands.every(isLegalBand) &&
    isUnique(bands.map(({ label }) => label)) &&
    (limitScope === 'COMPOSITE') === compositeKeyFields.length > 0 &&
    (limitScope === 'CUSTOM') === ((keyField === undefined) !== (keyResolver === undefined)) &&
    rule.when.every(
      ({ field, values }) =>
        typeof field === 'string' && values.length > 0 && values.every((value) => typeof value === 'string'),
    )
  )
}

const isLegal = (sets: readonly RuleSet[]) =>
  isUnique(sets.map(({ id }) => id)) &&
  sets.every(
    ({ id, rules }) => identifier.test(id) && isUnique(rules.map((rule) => rule.id)) && rules.every(isLegalRule),
  )

const isLocated = (error: unknown) =>
  error instanceof FluxGateError &&
  error.code === 'FLUXGATE_RULES_INVALID' &&
  error.message.length < 20_000 &&
  error.errors.length >= 1 &&
  error.errors.length <= 1_000 &&
  error.errors.every(
    ({ path, message }) => path.length > 0 && path.length <= 501 && message.length > 0 && message.length < 1_000,
  )

it(`each of ${documents} malformed documents gives rules within all limits, or issues with paths`, () => {
  console.info(`malformed documents: FLUXGATE_SEED=${seed}`)
  const prototypes = () => [Object, Array, Function, String].map(({ prototype }) => Reflect.ownKeys(prototype).length)
  const before = prototypes()
  let parsed = 0
  for (let index = 0; index < documents; index++) {
    const read = malformed()
    let result: readonly RuleSet[]
    try {
      result = read()
    } catch (error) {
      if (isLocated(error)) continue
      throw new Error(`document ${index} of FLUXGATE_SEED=${seed}`, { cause: error })
    }
    parsed += 1
    if (!isLegal(result)) throw new Error(`document ${index} of FLUXGATE_SEED=${seed}: ${JSON.stringify(result)}`)
  }
  expect(prototypes()).toEqual(before)
  expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false)
  // Both outcomes must occur, or the generator is not effective.
  expect(parsed).toBeGreaterThan(documents / 100)
  expect(parsed).toBeLessThan(documents / 2)
})
