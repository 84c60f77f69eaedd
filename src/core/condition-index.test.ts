import { describe, expect, it } from 'vitest'
import { indexConditions } from './condition-index.js'
import type { Condition } from './rule.js'

const many = (when: (i: number) => readonly Condition[]) =>
  Array.from({ length: 20 }, (_, i) => ({ name: `n${i}`, when: when(i) }))
const indexOf = (items: ReturnType<typeof many>) => indexConditions(items, ({ when }) => when)

describe('indexConditions', () => {
  it('leaves only those that the request could satisfy, by the field that tells most apart', () => {
    const items = many((i) => [
      { field: 'attributes.plan', values: ['paid'] },
      { field: 'header.X-Tenant', values: [`t${i}`, 'all'] },
    ])
    const narrow = indexOf(items)
    expect(narrow?.({ headers: { 'x-tenant': 't7' } })).toEqual([items[7]])
    expect(narrow?.({ headers: { 'x-tenant': ['t7', 't3', 't7'] } })).toEqual([items[7], items[3]])
    expect(narrow?.({ headers: { 'x-tenant': 'all' } })).toHaveLength(20)
    expect(narrow?.({ attributes: { plan: 'paid' } })).toEqual([])
  })

  it('keeps those that have nothing to look up', () => {
    const items = many((i) => (i < 18 ? [{ field: 'userId', values: [`u${i}`] }] : []))
    expect(indexOf(items)?.({ userId: 'u1' })).toEqual([items[18], items[19], items[1]])
    expect(indexOf(items)?.({})).toEqual([items[18], items[19]])
  })

  it('stays out of the way of conditions that are not compared letter by letter', () => {
    expect(indexOf(many((i) => [{ field: 'path.id', values: [`${i}`] }]))).toBeUndefined()
    expect(indexOf(many(() => [{ field: 'method', values: ['get'] }]))).toBeUndefined()
    expect(indexOf(many((i) => [{ field: 'clientIp', values: [`10.${i}.0.0/16`] }]))).toBeUndefined()
  })

  it('is not made for a handful', () => {
    const items = many((i) => [{ field: 'userId', values: [`u${i}`] }])
    expect(indexOf(items.slice(0, 8))).toBeUndefined()
    expect(indexOf(items.slice(0, 9))?.({ userId: 'u8' })).toEqual([items[8]])
  })
})
