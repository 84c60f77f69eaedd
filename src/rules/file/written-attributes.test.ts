/** `attributes` as written by programs in any language, in files of any layout. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { compactJson } from '../../core/json/json-ranges.js'
import { jsonText, parseJson } from '../../core/json/source-text.js'
import { fileRuleStore } from './file-rule-store.js'

const space = fc.constantFrom('', '', '', ' ', '  ', '\t', '\n', '\r\n  ')
const number = fc.constantFrom('1.0', '-0', '1e400', '-1E+2', '12345678901234567890', '0.10', '7')
const text = fc.oneof(
  fc.string({ unit: 'binary' }).map((it) => JSON.stringify(it)),
  fc.constantFrom('"\\u00e9"', '"\\/"', '"\\ud83d\\ude00"', '"\\ud800"', '"a: b # c"', '"- x"', '"é한"', '"\ufeff"'),
)
const name = fc.oneof(text, fc.constantFrom('"10"', '"2"', '"b"', '"__proto__"', '"attributes"', '"a.b"', '""'))

const { object } = fc.letrec<{ value: string; list: string; object: string }>((tie) => ({
  value: fc.oneof({ maxDepth: 3 }, number, text, fc.constantFrom('true', 'null'), tie('object'), tie('list')),
  list: fc
    .tuple(fc.array(fc.tuple(space, tie('value'), space), { maxLength: 3 }), space)
    .map(([items, empty]) => `[${items.length === 0 ? empty : items.map((item) => item.join('')).join(',')}]`),
  object: fc
    .tuple(
      fc.uniqueArray(fc.tuple(space, name, space, fc.constant(':'), space, tie('value'), space), {
        maxLength: 4,
        selector: ([, one]) => JSON.parse(one) as string,
      }),
      space,
    )
    .map(([members, empty]) => `{${members.length === 0 ? empty : members.map((one) => one.join('')).join(',')}}`),
}))

const document = { ruleSets: [{ id: 'api', rules: [{ id: 'x', bands: [{ capacity: 1, window: '1s' }] }] }] }
const layouts: [string, string][] = [
  [
    'rules.yaml',
    'ruleSets:\n  - id: api\n    rules:\n      # about x\n      - id: x\n        bands: [{ capacity: 1, window: 1s }]\n',
  ],
  ['line.json', JSON.stringify(document)],
  ['lines.json', JSON.stringify(document, null, 2)],
]

it.each(layouts)(
  'attributes round-trip byte for byte through %s and keep their text in the file',
  async (file, before) => {
    await fc.assert(
      fc.asyncProperty(object, async (attributes) => {
        const directory = await mkdtemp(join(tmpdir(), 'fluxgate-'))
        const path = join(directory, file)
        await writeFile(path, before)
        const edited = fileRuleStore(path)
        const wanted = parseJson(`{"id":"a","attributes":${attributes},"bands":[{"capacity":1,"window":"1s"}]}`)
        await edited.putRule('api', wanted, { by: 'ann' })
        await edited.putRule('api', { ...(await edited.getRule('api', 'x')), name: 'edited' }, { by: 'ann' })
        const read = await fileRuleStore(path).getRuleSet('api')
        expect(jsonText(read?.rules[0]?.attributes)).toBe(attributes)
        expect(read?.version).toBe(3)
        if (file === 'rules.yaml') expect(await readFile(path, 'utf8')).toContain('# about x')
        // The file keeps everything except white space.
        await rm(`${path}.versions.json`)
        const alone = await fileRuleStore(path).getRule('api', 'a')
        expect(compactJson(jsonText(alone?.attributes))).toBe(compactJson(attributes))
        await rm(directory, { recursive: true })
      }),
      { numRuns: 30 },
    )
  },
)
