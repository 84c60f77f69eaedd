import { describe, expect, it } from 'vitest'
import { parseDocument } from '../../document/document.js'
import { rewriteDocument } from './document.js'
import { readRulesText } from './rules-text.js'

const lines = (...parts: string[]) => `${parts.join('\n')}\n`

interface Loose {
  [field: string]: unknown
  bands: [{ capacity: number }, { capacity: number }]
}
interface LooseSet {
  [field: string]: unknown
  rules: [Loose, Loose]
}
interface LooseDocument extends LooseSet {
  ruleSets: [LooseSet, LooseSet]
}

const add = (list: readonly unknown[], item: unknown): void => void (list as unknown[]).push(item)

/** The text after `edit` has changed its value. */
function edited(text: string, edit: (document: LooseDocument) => unknown, format: 'yaml' | 'json' = 'yaml'): string {
  const document = parseDocument(text, format) as LooseDocument
  return rewriteDocument(readRulesText(text, format), format, edit(document) ?? document).text
}

const commented = lines(
  '# The limits of everything.',
  'ruleSets:',
  '',
  '  # Those of the API',
  '  - id: api   # public',
  '    rules:',
  '      # Everybody',
  '      - id: all',
  '        bands:',
  '          - { capacity: 5,   window: "1s" } # short',
  '          - capacity: 100 # long',
  "            window: '1m'",
  '',
  '      # Guessing passwords',
  '      - { id: login, path: /login, bands: [{ capacity: 1, window: 1m }] }',
  '      # The end.',
  '  - id: web',
  '    description: >',
  '      Folded',
  '      text',
  '    rules: []',
  '# Nothing below.',
)

describe('an edit of a YAML file', () => {
  it('changes one number and no other byte', () => {
    const after = edited(commented, ({ ruleSets }) => {
      ruleSets[0].rules[0].bands[0].capacity = 7
      ruleSets[0].rules[0].bands[1].capacity = 200
    })
    expect(after).toBe(commented.replace('capacity: 5,', 'capacity: 7,').replace('100 # long', '200 # long'))
  })

  it('adds fields below the others of a rule in the same style', () => {
    const after = edited(commented, ({ ruleSets }) => {
      Object.assign(ruleSets[0].rules[0], { enabled: false, attributes: { team: 'a: b', list: [1, { x: null }] } })
      Object.assign(ruleSets[0].rules[1], { name: 'Log in', method: ['POST'] })
    })
    const added = ['        enabled: false', '        attributes:', '          team: "a: b"', '          list:']
    added.push('            - 1', '            - x: null', '')
    expect(after).toBe(
      commented
        .replace("            window: '1m'\n", `            window: '1m'\n${added.join('\n')}`)
        .replace('window: 1m }] }', 'window: 1m }], name: Log in, method: [ POST ] }'),
    )
  })

  it('removes fields', () => {
    const text = lines(
      'id: s',
      'rules:',
      '  - name: x',
      '    id: a # here',
      '    # about the mode',
      '    mode: SHADOW',
    ).concat(lines('    bands: [{ capacity: 1, window: 1s }]', '  - { name: y, id: b, mode: SHADOW, bands: [] }'))
    const after = edited(text, ({ rules }) => {
      for (const rule of rules) {
        delete rule.name
        delete rule.mode
      }
    })
    expect(after).toBe(
      lines(
        'id: s',
        'rules:',
        '  - id: a # here',
        '    bands: [{ capacity: 1, window: 1s }]',
        '  - { id: b, bands: [] }',
      ),
    )
  })

  it('adds rules at the end of their set, and sets at the end of the document', () => {
    const after = edited(commented, ({ ruleSets }) => {
      add(ruleSets[0].rules, { id: 'new', bands: [{ capacity: 1, window: '1s' }] })
      add(ruleSets[1].rules, { id: 'first', bands: [] })
      add(ruleSets, { id: 'third', rules: [] })
    })
    const rule = ['      - id: new', '        bands:', '          - capacity: 1', '            window: 1s', '']
    expect(after).toBe(
      commented
        .replace('      # The end.\n', `${rule.join('\n')}      # The end.\n`)
        .replace('rules: []\n', 'rules:\n      - id: first\n        bands: []\n  - id: third\n    rules: []\n'),
    )
  })

  it('removes a rule with the comment directly above it, and keeps other comments', () => {
    const after = edited(commented, ({ ruleSets }) => void ruleSets[0].rules.shift())
    const [before = '', rest = ''] = commented.split('      # Everybody\n')
    expect(after).toBe(before + rest.slice(rest.indexOf('\n      # Guessing')))
    const none = edited(commented, ({ ruleSets }) => void ruleSets[0].rules.splice(0, 2))
    expect(none).toContain('    rules: []\n')
    expect(none).toContain('  - id: api   # public\n')
  })

  it('does not extend a block scalar by the lines below a removed rule or field', () => {
    const text = (header: string, gap: string, last: string) =>
      lines('id: s', 'rules:', '  - id: a', `    name: ${header}`, '      x', last, gap, 'description: of s')
    for (const [header, gap] of [
      ['|+', '\n'],
      ['>+', '  '],
      ['|', '      # about b'],
    ] as const) {
      const withoutRule = edited(text(header, gap, '  - id: b'), ({ rules }) => void (rules as unknown[]).pop())
      const withoutField = edited(text(header, gap, '    path: /b'), ({ rules }) => void delete rules[0].path)
      for (const after of [withoutRule, withoutField])
        expect(parseDocument(after, 'yaml')).toEqual({
          id: 's',
          rules: [{ id: 'a', name: 'x\n' }],
          description: 'of s',
        })
    }
  })

  it('adds rules below the blank lines that belong to a block scalar, and keeps its text', () => {
    const text = lines('id: s', 'rules: # of s', '  - id: a', '    name: |+', '      x', '', 'description: of s')
    expect(edited(text, ({ rules }) => add(rules, { id: 'b' }))).toBe(
      text.replace('description', '  - id: b\ndescription'),
    )
  })

  it('keeps line breaks, a byte order mark, and a last line without a line break', () => {
    const text = '\ufeffid: s\r\nrules:\r\n  # one\r\n  - id: a\r\n    priority: 1'
    const after = edited(text, ({ rules }) => {
      rules[0].priority = 2
      add(rules, { id: 'b' })
    })
    expect(after).toBe('\ufeffid: s\r\nrules:\r\n  # one\r\n  - id: a\r\n    priority: 2\r\n  - id: b')
  })

  it('changes a value shared by an alias in one place only', () => {
    const text = lines(
      'id: s',
      'rules:',
      '  - id: a',
      '    bands: &std [{ capacity: 1 }] # shared',
      '  - id: b',
      '    bands: *std # too',
    )
    const after = edited(text, (document) => {
      const copy = structuredClone(JSON.parse(JSON.stringify(document)))
      copy.rules[0].bands[0].capacity = 2
      return copy
    })
    expect(after).toBe(
      lines(
        'id: s',
        'rules:',
        '  - id: a',
        '    bands: &std [{ capacity: 2 }] # shared',
        '  - id: b',
        '    bands: [ { capacity: 1 } ] # too',
      ),
    )
  })

  it('converts a single rule set to a list to add another one, and keeps its comments', () => {
    const text = lines(
      '# Mine',
      'id: s # set',
      'rules:',
      '  # one',
      '  - id: a',
      '    description: |',
      '      long',
      '',
      '      text',
    )
    const after = edited(text, (document) => ({ ruleSets: [document, { id: 't', rules: [] }] }))
    expect(after).toBe(
      lines('# Mine', 'ruleSets:', '  - id: s # set', '    rules:', '      # one', '      - id: a').concat(
        lines('        description: |', '          long', '', '          text', '  - id: t', '    rules: []'),
      ),
    )
    const json = '{\n  "id": "s",\n  "rules": []\n}\n'
    expect(edited(json, (document) => ({ ruleSets: [document] }), 'json')).toBe(
      '{\n  "ruleSets": [\n    {\n      "id": "s",\n      "rules": []\n    }\n  ]\n}\n',
    )
    expect(edited('{"id":"s","rules":[]}', () => ({ ruleSets: [] }), 'json')).toBe('{"ruleSets":[]}')
  })

  it('keeps the spelling of strings and numbers', () => {
    const attributes = JSON.parse(
      `{"z":"\\u0000\\u2028\\ud800","__proto__":{"a":[[],{},"- x","# y","yes","0x1f","1e3"," "]},"n":[1e21,5e-324,-1.5,0.1],"long":"${'x'.repeat(300)} y","lines":"a\\nb\\n\\n c","":0}`,
    )
    const after = edited(commented, ({ ruleSets }) => {
      ruleSets[0].rules[1].attributes = attributes
      ruleSets[0].rules[0].attributes = attributes
    })
    const { ruleSets } = parseDocument(after, 'yaml') as LooseDocument
    for (const rule of ruleSets[0].rules) expect(JSON.stringify(rule.attributes)).toBe(JSON.stringify(attributes))
    expect(after).toContain('# Guessing passwords')
  })
})

describe('an edit of a JSON file', () => {
  const text =
    '{\n\t"id": "s",\n\t"rules": [\n\t\t{ "id": "a", "priority": 1.0, "name": "\\u00e4" },\n\t\t{\n\t\t\t"id": "b"\n\t\t}\n\t]\n}\n'

  it('keeps the indentation and the spelling of unchanged parts', () => {
    const after = edited(
      text,
      ({ rules }) => {
        rules[1].name = 'x'
        add(rules, { id: 'c', bands: [1] })
      },
      'json',
    )
    expect(after).toBe(
      text.replace(
        '"id": "b"\n\t\t}',
        '"id": "b",\n\t\t\t"name": "x"\n\t\t},\n\t\t{\n\t\t\t"id": "c",\n\t\t\t"bands": [\n\t\t\t\t1\n\t\t\t]\n\t\t}',
      ),
    )
  })

  it('keeps a document on one line', () => {
    const after = edited('{"id":"s","rules":[{"id":"a"}]}', ({ rules }) => add(rules, { id: 'b', n: {} }), 'json')
    expect(after).toBe('{"id":"s","rules":[{"id":"a"},{"id":"b","n":{}}]}')
  })

  it('removes rules and fields', () => {
    const after = edited(text, ({ rules }) => void rules.shift(), 'json')
    expect(after).toBe('{\n\t"id": "s",\n\t"rules": [\n\t\t{\n\t\t\t"id": "b"\n\t\t}\n\t]\n}\n')
  })
})
