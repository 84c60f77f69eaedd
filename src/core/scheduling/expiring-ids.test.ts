import { expect, it } from 'vitest'
import { ExpiringIds } from './expiring-ids.js'

it('counts the ids that have not expired, whatever the order of their ends', () => {
  const ids = new ExpiringIds()
  ids.add('day', 86_400_000)
  ids.add('second', 1_000)
  ids.add('minute', 60_000)
  expect(ids.count(999)).toBe(3)
  expect(ids.count(1_000)).toBe(2)
  ids.add('minute', 120_000)
  expect(ids.count(60_000)).toBe(2)
  expect([ids.delete('minute'), ids.delete('minute')]).toEqual([true, false])
  expect(ids.count(60_000)).toBe(1)
})

it('drops the ids that were added first', () => {
  const ids = new ExpiringIds(3)
  for (const id of ['a', 'b', 'a', 'c', 'd']) ids.add(id, 1_000)
  expect(ids.count(0)).toBe(3)
  expect(['a', 'b', 'c', 'd'].filter((id) => ids.delete(id))).toEqual(['a', 'c', 'd'])
})
