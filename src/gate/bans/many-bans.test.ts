import { expect, it } from 'vitest'
import type { BanStore } from '../../core/contracts/ban-store.js'
import { memoryStore } from '../../stores/memory/memory-store.js'
import { createFluxGate } from '../create-flux-gate.js'

it('lists the first page of 20,000 bans by key, whatever the order in which they were set', async () => {
  const bands = [{ capacity: 1, window: '1d' }]
  const ban = { after: 1, within: '1m', for: '15m', max: '1d' }
  const rules = { id: 'api', rules: [{ id: 'login', limitScope: 'API_KEY' as const, bands, ban }] }
  const gate = await createFluxGate({ rules, store: memoryStore({}) })
  const bans = gate.bans as BanStore
  const keyOf = (i: number): string => `key ${String(i).padStart(5, '0')}`
  // In descending order, so that each key belongs before all keys that were found before.
  for (let i = 20_000; i > 0; i--) await bans.set('api', 'login', keyOf(i), {})
  const { items } = await bans.list('api', 'login', { limit: 1_000 })
  expect(items.map(({ key }) => key)).toEqual(Array.from({ length: 1_000 }, (_, i) => keyOf(i + 1)))
  await gate.close()
})
