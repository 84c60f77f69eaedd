import { describe, expect, it } from 'vitest'
import type { RequestContext } from '../request-context.js'
import type { Condition } from '../rule.js'
import { finish } from '../scheduling/steps.js'
import { indexConditions, lookUp } from './condition-index.js'

const many = (when: (i: number) => readonly Condition[]) =>
  Array.from({ length: 20 }, (_, i) => ({ name: `n${i}`, when: when(i) }))

function found(items: ReturnType<typeof many>, context: RequestContext): string[] {
  const { others, fieldIndexes } = finish(indexConditions(items))
  const lists = [others]
  for (const index of fieldIndexes) lookUp(index, context, lists)
  return lists.flat().map(({ name }) => name)
}

describe('indexConditions', () => {
  it('finds only items that the request can satisfy, by the field with the most distinct values', () => {
    const items = many((i) => [
      { field: 'attributes.plan', values: ['paid'] },
      { field: 'header.X-Tenant', values: [`t${i}`, 'all'] },
    ])
    expect(found(items, { headers: { 'x-tenant': 't7' } })).toEqual(['n7'])
    expect(found(items, { headers: { 'x-tenant': ['t7', 't3'] } })).toEqual(['n7', 'n3'])
    expect(found(items, { headers: { 'x-tenant': 'all' } })).toHaveLength(20)
    expect(found(items, { attributes: { plan: 'paid' } })).toEqual([])
    expect(found(items, { headers: { 'x-tenant': '' } })).toEqual([])
  })

  it('keeps the other conditions for evaluation and drops the indexed one', () => {
    const plan = { field: 'attributes.plan', values: ['paid'] }
    const { others, fieldIndexes } = finish(
      indexConditions(many((i) => [plan, { field: 'userId', values: [`u${i}`] }])),
    )
    expect(others).toEqual([])
    expect(fieldIndexes.map(({ byValue }) => byValue.get('u3'))).toEqual([[{ name: 'n3', when: [plan] }]])
  })

  it('keeps items without an indexable condition', () => {
    const items = many((i) => (i < 18 ? [{ field: 'userId', values: [`u${i}`] }] : []))
    expect(found(items, { userId: 'u1' })).toEqual(['n18', 'n19', 'n1'])
    expect(found(items, {})).toEqual(['n18', 'n19'])
  })

  it('distinguishes a missing value from an empty one', () => {
    const items = many((i) => [{ field: 'userId', values: [i === 0 ? '' : `u${i}`] }])
    expect(found(items, { userId: '' })).toEqual(['n0'])
    expect(found(items, {})).toEqual([])
  })

  it('does not index conditions that are not compared as exact text', () => {
    for (const field of ['path.id', 'method', 'clientIp']) {
      const items = many((i) => [{ field, values: [`10.${i}.0.0/16`] }])
      expect(finish(indexConditions(items)), field).toEqual({ others: items, fieldIndexes: [] })
    }
  })

  it('builds no index for a few items', () => {
    const items = many((i) => [{ field: 'userId', values: [`u${i}`] }])
    expect(finish(indexConditions(items.slice(0, 8))).fieldIndexes).toEqual([])
    expect(found(items.slice(0, 9), { userId: 'u8' })).toEqual(['n8'])
  })
})
