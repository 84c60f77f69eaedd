import { describe, expect, it } from 'vitest'
import { snapshotSteps } from '../core/decision/snapshot.js'
import type { Decision } from '../core/decision.js'
import { jsonChunksSteps, jsonTextSteps } from '../core/json/json-steps.js'
import type { RequestContext } from '../core/request-context.js'
import { finish, type Steps } from '../core/scheduling/steps.js'
import { parseDocumentSteps } from '../rules/document/document.js'
import { rewriteSteps } from '../rules/file/rewrite/long-document.js'
import { readRulesText } from '../rules/file/rewrite/rules-text.js'
import { assembleAll } from '../rules/mongo/assemble.js'
import { toMongo } from '../rules/mongo/document.js'
import { createHead, type MongoHead } from '../rules/mongo/head.js'
import { historyDocument } from '../rules/mongo/history.js'
import { maxRulesPerSet, parseRuleSets, ruleSetSteps } from '../rules/schema/parse-rules.js'
import { planPutRuleSet } from '../rules/store/plan-edit.js'
import type { RuleSetChange, RuleSetState } from '../rules/store/rule-storage.js'
import { createFluxGate } from './create-flux-gate.js'
import type { FluxGate } from './flux-gate.js'

const count = 4_000

const setOf = (capacity: number, rules = count) => ({
  id: 'api',
  rules: Array.from({ length: rules }, (_, i) => ({
    id: `r${i}`,
    path: `/a${i}`,
    bands: [{ capacity, window: '1h' }],
  })),
})

/** The buckets are in this process, so decisions need no promise. */
const decideNow = (gate: FluxGate, context: RequestContext): Decision => gate.decide(context) as Decision

/** Counts the steps of a piece of work. */
function stepsOf(work: Steps<unknown>): number {
  let steps = 0
  for (const _ of work) steps += 1
  return steps
}

describe('work on large rule sets', () => {
  const few = 500
  const rules = setOf(1, few)
  const options = { maxWaitMs: 1, resetBucketsOnReload: true, resets: () => 0 }
  const yaml = `ruleSets:\n  - id: api\n    rules:\n${rules.rules
    .map(({ id, path }) => `      - id: ${id}\n        path: ${path}\n        bands: [{ capacity: 1, window: 1h }]\n`)
    .join('')}`

  const stored: RuleSetState = { version: 0, removedVersion: 0, rules: [] }
  const planning = { ruleSetId: 'api', stored, edit: { by: 'ann' }, at: '2026-01-31T12:00:00.000Z' }
  const change = finish(planPutRuleSet(planning, rules)) as RuleSetChange
  const heads = new Map([['api', finish(createHead(change))]])
  const documents = change.put.map((rule) => toMongo('api', rule))

  it.each<[string, () => Steps<unknown>, number]>([
    ['validation', () => ruleSetSteps(rules), few],
    ['compilation', () => snapshotSteps(parseRuleSets(rules), options), few],
    // A step parses 64 values, and each rule has six.
    ['JSON', () => parseDocumentSteps(JSON.stringify(rules), 'json'), (few * 6) / 64 - 1],
    // One step composes eight rules, and each rule is converted in a separate step.
    ['YAML', () => parseDocumentSteps(yaml, 'yaml'), few + Math.floor(few / 8)],
    ['a head in MongoDB', () => createHead(change), few],
    ['a set read from MongoDB', () => assembleAll(heads, documents, 'MongoDB'), few],
    ['an entry in MongoDB', () => historyDocument(heads.get('api') as MongoHead, change.entry), few],
    ['JSON text', () => jsonTextSteps(rules), few],
    ['JSON for a response or a file', () => jsonChunksSteps(rules), few],
  ])('%s can yield after every few rules', (_, work, least) => {
    expect(stepsOf(work())).toBeGreaterThanOrEqual(Math.floor(least))
  })

  it.each(['yaml', 'json'] as const)(
    'a set beside the only one of a %s file can yield after every few rules',
    (format) => {
      const list = yaml.slice(yaml.indexOf('      - '))
      const text = format === 'yaml' ? `# ours\nid: api\nrules:\n${list}` : JSON.stringify(rules)
      const given = readRulesText(text, format)
      const steps = rewriteSteps(given, format, { ruleSets: [given.document, { ...rules, id: 'second' }] })
      expect(stepsOf(steps)).toBeGreaterThanOrEqual(few / 32)
    },
  )

  it.each(['yaml', 'json'] as const)(
    'a set beside an empty one of a %s file can yield after every few rules',
    (format) => {
      const text =
        format === 'yaml' ? 'ruleSets:\n  - id: empty\n    rules: []\n' : '{"ruleSets":[{"id":"empty","rules":[]}]}'
      const steps = rewriteSteps(readRulesText(text, format), format, { ruleSets: [{ id: 'empty', rules: [] }, rules] })
      expect(stepsOf(steps)).toBeGreaterThanOrEqual(few / 32)
    },
  )

  it('parses long YAML lists like short ones', () => {
    const { value } = finish(parseDocumentSteps(yaml, 'yaml'))
    expect(value).toEqual({ ruleSets: [rules] })
    const odd = `${yaml}    # the end\n    strategy: first\n`
    expect(finish(parseDocumentSteps(odd, 'yaml')).value).toEqual({ ruleSets: [{ ...rules, strategy: 'first' }] })
    const shared = yaml
      .replace('[{ capacity: 1, window: 1h }]', '&b [{ capacity: 1, window: 1h }]')
      .replaceAll(/bands: \[.*/g, 'bands: *b')
    expect(finish(parseDocumentSteps(shared, 'yaml')).value).toEqual({ ruleSets: [rules] })
    const broken = yaml.replace('path: /a300', 'path: "/a300')
    expect(() => finish(parseDocumentSteps(broken, 'yaml'))).toThrow('line ')
  })

  it('rejects a list that is too long before it validates a rule', () => {
    const tooMany = { id: 'api', rules: new Array(maxRulesPerSet + 1).fill('not a rule') }
    expect(() => parseRuleSets(tooMany)).toThrow(
      /1 error\n {2}ruleSets\[0\]\.rules: must be a list of at most 100000 rules; received a list of 100001 items\. Split it into several rule sets$/,
    )
  })
})

describe('a gate that reloads a large rule set', () => {
  it('keeps deciding by the previous rules until the new ones are in effect', async () => {
    const rules = setOf(1)
    const gate = await createFluxGate({ rules, reload: { strategy: 'NONE' } })
    rules.rules = setOf(5).rules
    const limits: (number | null)[] = []
    let isLoading = true
    const check = (): void => {
      if (!isLoading) return
      limits.push(decideNow(gate, { path: '/a7', clientIp: '192.0.2.1' }).limit)
      setImmediate(check)
    }
    setImmediate(check)
    await gate.reload()
    isLoading = false
    // A slice takes 5 ms per turn of the event loop; 4000 rules take far longer on any machine.
    expect(limits.length).toBeGreaterThanOrEqual(3)
    expect(limits).toEqual(limits.toSorted())
    expect(limits[0]).toBe(1)
    expect(decideNow(gate, { path: '/a7', clientIp: '192.0.2.1' }).limit).toBe(5)
    await gate.close()
  })

  it('recompiles if a rule is reset during the reload', async () => {
    const rules = setOf(1)
    const gate = await createFluxGate({ rules, reload: { strategy: 'NONE' } })
    const ask = () => decideNow(gate, { path: '/a7', clientIp: '192.0.2.1' }).allowed
    expect([ask(), ask()]).toEqual([true, false])
    rules.rules = [...setOf(1).rules, ...setOf(1, 1).rules.map((rule) => ({ ...rule, id: 'new', path: '/new' }))]
    const reloaded = gate.reload()
    await new Promise((resolve) => setImmediate(resolve))
    await gate.reset({ ruleSetId: 'api', ruleId: 'r7' })
    expect([ask(), ask()]).toEqual([true, false])
    await reloaded
    expect(ask()).toBe(false)
    await gate.close()
  })
})
