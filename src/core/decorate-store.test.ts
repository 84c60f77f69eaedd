import { expect, it } from 'vitest'
import { memoryStore } from '../stores/memory/memory-store.js'
import type { BucketStore, SharedGenerations } from './bucket-store.js'
import { decorateStore, withCapabilities } from './decorate-store.js'

const generations: SharedGenerations = {
  isKnown: true,
  of: () => 7,
  resetRules: async () => {},
  watch: () => () => {},
}

it('converts the deprecated members of a custom store to capabilities', async () => {
  const calls: string[] = []
  const custom: BucketStore = {
    ...decorateStore(memoryStore(), {}),
    resets: generations,
    isBounded: true,
    ready: async (withinMs) => void calls.push(`ready ${withinMs}`),
    probe: async () => void calls.push('probe'),
  }
  const store = withCapabilities(custom)
  expect(store.generations).toBe(generations)
  expect(store.availability?.isBounded).toBe(true)
  await store.availability?.ready?.(30)
  await store.availability?.probe?.()
  expect(calls).toEqual(['ready 30', 'probe'])
})

it('returns a store without deprecated members unchanged', () => {
  const plain = memoryStore()
  expect(withCapabilities(plain)).toBe(plain)
  const current = decorateStore(plain, { generations, availability: { isBounded: true } })
  expect(withCapabilities(current)).toBe(current)
})

it('forwards every capability and drops chargeSync, which would bypass a replaced charge', () => {
  const overrides = memoryStore().overrides
  const inner = decorateStore(memoryStore(), { generations, overrides, availability: { isBounded: true } })
  const outer = decorateStore(inner, { retire: () => {} })
  expect(outer).toMatchObject({ generations, overrides, availability: { isBounded: true } })
  expect(decorateStore(memoryStore(), {}).chargeSync).toBeUndefined()
})
