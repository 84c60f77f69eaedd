import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { finish } from '../../core/scheduling/steps.js'
import { parseDocument } from '../document/document.js'
import { issueLocator } from '../document/locate-issues.js'
import { bandKinds } from './fields/band-schema.js'
import { parseRule, parseRuleSets, ruleSetKinds, ruleSetSteps } from './parse-rules.js'
import { ruleKinds } from './rule-schema.js'

const reference = readFileSync(new URL('../../../docs/reference/rules.md', import.meta.url), 'utf8')
const examples = [...reference.matchAll(/^```(\w+)( \w+)?\n(.*?)^```$/gms)].map(
  ([, language = '', kind = '', text = '']) => ({
    language,
    kind: kind.trim(),
    text,
  }),
)
const documents = examples.filter(({ language, kind }) => language !== 'text' && kind !== 'broken')

describe('docs/reference/rules.md', () => {
  it.each(documents)('has examples that parse: $text', ({ language, kind, text }) => {
    const document = parseDocument(text, language === 'json' ? 'json' : 'yaml')
    if (kind === 'rule') expect(parseRule(document).bands).toHaveLength(1)
    else expect(parseRuleSets(document)).not.toEqual([])
  })

  it('shows the actual error message of an invalid document', () => {
    const broken = examples.find(({ kind }) => kind === 'broken')?.text ?? ''
    const message = examples.find(({ language }) => language === 'text')?.text.trimEnd() ?? ''
    const load = () => finish(ruleSetSteps(parseDocument(broken, 'yaml'), 'rules.yaml', issueLocator(broken, 'yaml')))
    expect(load).toThrow(expect.objectContaining({ message }))
  })

  it.each(Object.keys({ ...ruleSetKinds, ...ruleKinds, ...bandKinds }))('documents %s', (field) => {
    expect(reference).toContain(`\`${field}\``)
  })

  it('documents no unknown fields', () => {
    const rows = [...reference.matchAll(/^\| (`\w+`(?:, `\w+`)*) \| [^|]* \| [^|]* \|$/gm)].map(
      ([, names = '']) => names,
    )
    const explained = rows.flatMap((names) => names.replaceAll('`', '').split(', '))
    expect(explained.length).toBeGreaterThan(30)
    expect(
      explained.filter((name) => !Object.keys({ ...ruleSetKinds, ...ruleKinds, ...bandKinds }).includes(name)),
    ).toEqual([])
  })
})
