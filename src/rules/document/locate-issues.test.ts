import { describe, expect, it } from 'vitest'
import { finish } from '../../core/scheduling/steps.js'
import { describeIssue } from '../../validation/issues.js'
import { checkRuleSets } from '../schema/parse-rules.js'
import { type DocumentFormat, parseDocument } from './document.js'
import { issueLocator } from './locate-issues.js'

/** The issues of a document, each as `line:column path`. */
function placesIn(text: string, format: DocumentFormat): string[] {
  const { errors } = checkRuleSets(parseDocument(text, format))
  return finish(issueLocator(text, format)(errors)).map(({ line, column, path }) => `${line}:${column} ${path}`)
}

describe('the position of an issue', () => {
  it('is that of the value in YAML, and of the name if the field is unknown', () => {
    const text = `# limits
ruleSets:
  - id: api
    rules:
      - id: one
        pathh: /x
        bands:
          - { capacity: -1, window: 1m }
          - capacity: 5
            window: soon
`
    expect(placesIn(text, 'yaml')).toEqual([
      '6:9 ruleSets[0].rules[0].pathh',
      '8:25 ruleSets[0].rules[0].bands[0].capacity',
      '10:21 ruleSets[0].rules[0].bands[1].window',
    ])
  })

  it('is that of the value in JSON, and of the name if the field is unknown', () => {
    const text = `{
  "ruleSets": [
    { "id": "api", "rules": [
      { "id": "one", "pathh" : "/x", "when": { "header.x-\\"app": [] },
        "bands": [{ "capacity": -1, "window": "1m" }] }
    ] }
  ]
}`
    expect(placesIn(text, 'json')).toEqual([
      '4:22 ruleSets[0].rules[0].pathh',
      '4:48 ruleSets[0].rules[0].when["header.x-\\"app"]',
      '5:33 ruleSets[0].rules[0].bands[0].capacity',
    ])
  })

  it('is found in a list of rule sets and in a single rule set', () => {
    expect(placesIn('- id: a\n  rules: []\n- id: b\n  rules: 7\n', 'yaml')).toEqual(['4:10 ruleSets[1].rules'])
    expect(placesIn('id: a\nrules:\n  - id: r\n    bands: 7\n', 'yaml')).toEqual(['4:12 ruleSets[0].rules[0].bands'])
    expect(placesIn('[\n{"id": "a", "rules": 7}]', 'json')).toEqual(['2:22 ruleSets[0].rules'])
    expect(placesIn('{"id": "a",\n "rules": 7}', 'json')).toEqual(['2:11 ruleSets[0].rules'])
  })

  it('is that of the surrounding object if the field is missing', () => {
    expect(placesIn('ruleSets:\n  - id: a\n    rules:\n      - id: r\n', 'yaml')).toEqual([
      '4:9 ruleSets[0].rules[0].bands',
    ])
    expect(placesIn('{"ruleSets": [{"id": "a", "rules": [\n  {"id": "r"}]}]}', 'json')).toEqual([
      '2:3 ruleSets[0].rules[0].bands',
    ])
  })

  it('counts lines after a byte order mark, CRLF and long lists', () => {
    const rules = Array.from({ length: 200 }, (_, i) => `    - { id: r${i}, bands: [{ capacity: 1, window: 1s }] }\r\n`)
    rules[150] = '    - { id: r150, bands: [{ capacity: x, window: 1s }] }\r\n'
    const text = `\ufeffruleSets:\r\n  - id: a\r\n    rules:\r\n${rules.join('')}`
    expect(placesIn(text, 'yaml')).toEqual(['154:39 ruleSets[0].rules[150].bands[0].capacity'])
  })

  it('is omitted if no part of the path is in the document', () => {
    const locate = issueLocator('server: {}\n', 'yaml')
    const issue = { path: 'FLUXGATE_SERVER_PORT', message: 'must be a port' }
    expect(finish(locate([issue]))).toEqual([issue])
    expect(describeIssue(issue)).toBe('FLUXGATE_SERVER_PORT: must be a port')
  })

  it('is found for names that messages shorten or escape', () => {
    const name = 'x'.repeat(90)
    expect(
      placesIn(`id: a\nrules:\n  - id: r\n    ${name}: 1\n    bands: [{ capacity: 1, window: 1s }]\n`, 'yaml'),
    ).toEqual([expect.stringMatching(/^3:5 ruleSets\[0\]\.rules\[0\]\["x+…"\]$/)])
    expect(
      placesIn('id: a\nrules:\n  - id: r\n    "a b\\n": 1\n    bands: [{ capacity: 1, window: 1s }]\n', 'yaml'),
    ).toEqual(['4:5 ruleSets[0].rules[0]["a b\\n"]'])
  })
})
