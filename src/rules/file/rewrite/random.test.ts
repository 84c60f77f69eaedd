/** Random edits of documents in random styles: the result has the requested value, and unchanged parts keep their text. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Document, isCollection, isMap, isSeq, type Node, parseDocument as parseYaml, visit } from 'yaml'
import { finish } from '../../../core/scheduling/steps.js'
import { parseDocument } from '../../document/document.js'
import { rewriteDocument } from './document.js'
import { rewriteLarge } from './long-document.js'
import { type RulesText, readRulesText } from './rules-text.js'
import { rewriteChangedRules } from './window.js'

type Fields = Record<string, unknown>
interface LooseSet {
  readonly id: string
  readonly rules: Fields[]
}

const leaf = fc.oneof(
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0),
  fc.boolean(),
  fc.constant(null),
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.constantFrom(
    'yes',
    '# no',
    '- a',
    'a: b',
    ' x',
    '0x10',
    '1_000',
    '~',
    '|',
    '>',
    '&a',
    '*a',
    '!t',
    '%',
    '@',
    '`',
    '"',
    "'",
    'x\n',
    'x\n\n',
  ),
)
const { tree } = fc.letrec((tie) => ({
  tree: fc.oneof({ maxDepth: 3 }, leaf, fc.array(tie('tree'), { maxLength: 3 }), tie('map')),
  map: fc.dictionary(fc.oneof(fc.string({ maxLength: 6 }), fc.constantFrom('__proto__', '1', 'a b')), tie('tree'), {
    maxKeys: 3,
  }),
}))
const fields = fc.dictionary(fc.constantFrom('name', 'priority', 'attributes', 'bands', 'when'), tree, { maxKeys: 4 })
const rulesOf = (prefix: string) =>
  fc.array(fields, { maxLength: 4 }).map((list) => list.map((rule, i) => ({ id: `${prefix}${i}`, ...rule })))
const document = fc.tuple(rulesOf('a'), rulesOf('b')).map(([a, b]) => ({
  ruleSets: [
    { id: 'x', rules: a },
    { id: 'y', rules: b },
  ],
}))

const style = fc.record({
  indent: fc.constantFrom(2, 4),
  indentSeq: fc.boolean(),
  lineEnd: fc.constantFrom('\n', '\r\n'),
  flowing: fc.array(fc.boolean(), { minLength: 1, maxLength: 7 }),
  gap: fc.constantFrom('', '\n', '  \n\n', '# aside\n', `${' '.repeat(16)}# far to the right\n`),
})
type Style = typeof style extends fc.Arbitrary<infer T> ? T : never

/** A random style: some parts in flow style, a comment above each rule on lines of its own, and a gap below each set. */
function written(value: unknown, { indent, indentSeq, lineEnd, flowing, gap }: Style): string {
  const yaml = new Document(value, { schema: 'core', aliasDuplicateObjects: false })
  let turn = 0
  visit(yaml, (_key, node, path) => {
    if (!isCollection(node)) return
    if (path.length > 5 && flowing[turn++ % flowing.length]) node.flow = true
    const id = isMap(node) ? node.get('id') : undefined
    if (typeof id === 'string' && path.length > 3) node.commentBefore = ` about ${id}`
  })
  const text = yaml.toString({ indent, indentSeq, lineWidth: 0 })
  return `${text.replace(/^ *- id: y$/m, (line) => gap + line)}${gap}`.replaceAll('\n', lineEnd)
}

/** The position of each rule in a text by id. */
function rulesIn(text: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  visit(parseYaml(text, { schema: 'core', uniqueKeys: false }), {
    Seq(_key, seq) {
      for (const item of isSeq(seq) ? seq.items : []) {
        const id = isMap(item) ? item.get('id') : undefined
        const [start = 0, end = 0] = (item as Node).range ?? []
        if (typeof id === 'string' && id.length === 2) found.set(id, text.slice(start, end).trimEnd())
      }
    },
  })
  return found
}

/** Set FLUXGATE_RANDOM_EDITS=3000 for more runs. fast-check prints the seed of a failure. */
const runs = Number(process.env.FLUXGATE_RANDOM_EDITS ?? 100)

const edit = fc.record({
  changed: fc.constantFrom('a0', 'a1', 'b0', 'b2'),
  to: fields,
  removed: fc.constantFrom('a0', 'a2', 'b1', 'none'),
  added: fc.option(fields, { nil: undefined }),
})

describe('random edits of random documents', () => {
  it('have the requested value and keep the text of all other rules', () => {
    fc.assert(
      fc.property(document, style, edit, (given, how, { changed, to, removed, added }) => {
        // Without gaps, which could become part of a block scalar above when the lines between are removed.
        const text = written(given, { ...how, gap: '' })
        const before = parseDocument(text, 'yaml') as { ruleSets: LooseSet[] }
        const ruleSets = before.ruleSets.map((set) => ({
          ...set,
          rules: set.rules
            .filter(({ id }) => id !== removed)
            .map((rule) => (rule.id === changed ? inOrder(rule, { id: changed, ...to }) : rule)),
        }))
        if (added !== undefined) ruleSets[0]?.rules.push({ id: 'n0', ...added })
        const after = rewriteDocument(readRulesText(text, 'yaml'), 'yaml', { ruleSets }).text
        expect(JSON.stringify(parseDocument(after, 'yaml'))).toBe(JSON.stringify({ ruleSets }))
        const [textsBefore, textsAfter] = [rulesIn(text), rulesIn(after)]
        for (const [id, rule] of textsBefore) {
          if (id === changed || id === removed) continue
          expect(textsAfter.get(id)).toBe(rule)
          if (text.includes(`# about ${id}`)) expect(after).toContain(`# about ${id}`)
        }
      }),
      { numRuns: runs },
    )
  })

  it('have the requested value in JSON', () => {
    fc.assert(
      fc.property(document, fc.constantFrom(undefined, '  ', '\t'), edit, (given, unit, { changed, to, removed }) => {
        const text = JSON.stringify(given, null, unit)
        const ruleSets = given.ruleSets.map((set) => ({
          ...set,
          rules: set.rules
            .filter(({ id }) => id !== removed)
            .map((rule) => (rule.id === changed ? inOrder(rule, { id: changed, ...to }) : rule)),
        }))
        const after = rewriteDocument(readRulesText(text, 'json'), 'json', { ruleSets }).text
        expect(JSON.stringify(JSON.parse(after))).toBe(JSON.stringify({ ruleSets }))
      }),
      { numRuns: runs },
    )
  })
})

describe('random edits, one after the other', () => {
  it.each(['yaml', 'json'] as const)('of %s do not parse the text of other rules', (format) => {
    let quick = 0
    fc.assert(
      fc.property(document, style, fc.array(edit, { minLength: 1, maxLength: 4 }), (given, how, edits) => {
        const text = format === 'yaml' ? written(given, how) : JSON.stringify(given, null, how.indent)
        let current = readRulesText(text, format)
        for (const [step, { changed, to, removed, added }] of edits.entries()) {
          const wanted = afterEdit(current.document as { ruleSets: LooseSet[] }, (rules) => [
            ...rules
              .filter(({ id }) => id !== removed)
              .map((rule) => (rule.id === changed ? inOrder(rule, { id: changed, ...to }) : rule)),
            ...(added === undefined ? [] : [{ id: `n${step}`, ...added }]),
          ])
          const next = rewriteChangedRules(current, format, wanted)
          if (next !== undefined) {
            quick += 1
            const again = readRulesText(next.text, format)
            expect(placesOf(wanted, next)).toEqual(placesOf(wanted, again))
            expect(JSON.stringify(again.document)).toBe(JSON.stringify(wanted))
          }
          current = next ?? readRulesText(rewriteDocument(current, format, wanted).text, format)
        }
      }),
      { numRuns: runs },
    )
    expect(quick).toBeGreaterThan(runs / 4)
  })
})

describe('random edits in steps, one after the other', () => {
  const setEdit = fc.record({
    edit,
    head: fc.constantFrom('same', 'first', 'all'),
    sets: fc.constantFrom('same', 'new', 'gone'),
  })

  it.each([
    ['yaml', 0],
    ['yaml', 32],
    ['json', 0],
    ['json', 32],
  ] as const)('of %s, up to %i rules together: they say what they should', (format, together) => {
    let done = 0
    fc.assert(
      fc.property(document, style, fc.array(setEdit, { minLength: 1, maxLength: 4 }), (given, how, edits) => {
        const text = format === 'yaml' ? written(given, how) : JSON.stringify(given, null, how.indent)
        let current = readRulesText(text, format)
        for (const [step, { edit, head, sets }] of edits.entries()) {
          const { changed, to, removed, added } = edit
          const changedSets = afterEdit(current.document as { ruleSets: LooseSet[] }, (rules) => [
            ...rules
              .filter(({ id }) => id !== removed)
              .map((rule) => (rule.id === changed ? inOrder(rule, { id: changed, ...to }) : rule)),
            ...(added === undefined ? [] : [{ id: `n${step}`, ...added }]),
          ]).ruleSets.map((set) => (head === 'same' ? set : { ...set, strategy: head }))
          const wanted = {
            ruleSets:
              sets === 'gone'
                ? changedSets.slice(0, -1)
                : sets === 'new'
                  ? [...changedSets, { id: `z${step}`, rules: [{ id: 'm0' }, { id: 'm1', ...to }] }]
                  : changedSets,
          }
          const next = finish(rewriteLarge(current, format, wanted, together))
          if (next !== undefined) {
            done += 1
            const again = readRulesText(next.text, format)
            expect(JSON.stringify(again.document)).toBe(JSON.stringify(wanted))
            expect(placesOf(wanted, next)).toEqual(placesOf(wanted, again))
          }
          current = next ?? readRulesText(rewriteDocument(current, format, wanted).text, format)
        }
      }),
      { numRuns: runs },
    )
    expect(done).toBeGreaterThan(runs / 4)
  })
})

describe('a set that is added to a single one of random style, in steps', () => {
  it.each([
    ['yaml', '', ''],
    ['yaml', '\ufeff# ours\n', ''],
    ['yaml', '---\n', '...\n'],
    ['json', '', ''],
  ] as const)('of %s between %j and %j: it says what it should', (format, head, tail) => {
    let done = 0
    fc.assert(
      fc.property(document, style, fields, (given, how, added) => {
        const [set] = given.ruleSets
        const text = format === 'yaml' ? written(set, how) : JSON.stringify(set, null, how.indent)
        const current = readRulesText(head + text + tail, format)
        const wanted = { ruleSets: [current.document, { id: 'z', rules: [{ id: 'm0' }, { id: 'm1', ...added }] }] }
        const next = finish(rewriteLarge(current, format, wanted))
        if (next === undefined) return
        done += 1
        const again = readRulesText(next.text, format)
        expect(JSON.stringify(again.document)).toBe(JSON.stringify(wanted))
        expect(placesOf(wanted, next)).toEqual(placesOf(wanted, again))
      }),
      { numRuns: runs },
    )
    if (tail === '') expect(done).toBeGreaterThan(runs / 4)
  })
})

/** One entry for each set. Places of sets without rules may be left out at the end. */
const placesOf = ({ ruleSets }: { ruleSets: readonly unknown[] }, { places }: RulesText) =>
  ruleSets.map((_, index) => places[index])

/** A rule set with edited rules; unchanged rules are the same objects. */
function afterEdit({ ruleSets }: { ruleSets: LooseSet[] }, edit: (rules: LooseSet['rules']) => LooseSet['rules']) {
  const [first, ...others] = ruleSets
  return { ruleSets: first === undefined ? [] : [{ ...first, rules: edit(first.rules) }, ...others] }
}

/** Existing rules keep their position. */
function inOrder(before: Fields, after: Fields): Fields {
  const names = new Set([...Object.keys(before).filter((name) => name in after), ...Object.keys(after)])
  return Object.fromEntries([...names].map((name) => [name, after[name]]))
}
