import { expect, it } from 'vitest'
import { MemoryCounters } from './memory-counters.js'

it('replaces the oldest keys at its maximum, expired ones first', async () => {
  const counters = new MemoryCounters(2)
  await counters.add('forever', 1, 0)
  await counters.add('hour', 1, 3_600_000)
  await counters.add('new', 1, 0)
  expect([await counters.get('forever'), (await counters.get('new'))?.hits]).toEqual([undefined, 1])
})

it('counts new keys at its maximum without searching all keys for each', async () => {
  const counters = new MemoryCounters(100_000)
  // With a search of 100,000 keys for each of the last 50,000, this would take a minute.
  for (let i = 0; i < 150_000; i++) await counters.add(`key ${i}`, 1, 3_600_000)
  expect(await counters.get('key 49999')).toBeUndefined()
  expect((await counters.get('key 50000'))?.hits).toBe(1)
})
