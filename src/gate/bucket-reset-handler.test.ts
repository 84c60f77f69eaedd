import { describe, expect, it } from 'vitest'
import type { BucketReset } from '../core/bucket-reset-handler.js'
import { createFluxGate } from './create-flux-gate.js'

describe('a bucket reset handler', () => {
  const band = (capacity: number) => [{ label: 'hour', capacity, window: '1h' }]

  it('is told of rules that start with fresh buckets, and of no others', async () => {
    const rules = { id: 'api', rules: ['a', 'b', 'c'].map((id) => ({ id, name: id, bands: band(10) })) }
    const told: BucketReset[] = []
    const gate = await createFluxGate({ rules, bucketResetHandler: { bucketsReset: (reset) => told.push(reset) } })
    const [a, b] = rules.rules
    // One is renamed, which its buckets do not mind, one has another capacity, and one goes.
    Object.assign(a as object, { name: 'renamed' })
    Object.assign(b as object, { bands: band(20) })
    rules.rules.pop()
    await gate.reload()
    expect(told).toEqual([{ ruleSetId: 'api', ruleIds: ['b', 'c'] }])
    await gate.reset({ ruleSetId: 'api', ruleId: 'a' })
    expect(told.slice(1)).toEqual([{ ruleSetId: 'api', ruleIds: ['a'] }])
    await gate.reload()
    await gate.reset({ ruleSetId: 'api', ruleId: 'a', key: 'anonymous' })
    expect(told).toHaveLength(2)
    await gate.close()
  })
})
