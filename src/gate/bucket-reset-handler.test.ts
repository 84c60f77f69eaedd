import { describe, expect, it } from 'vitest'
import type { BucketReset } from '../core/contracts/bucket-reset-handler.js'
import { createFluxGate } from './create-flux-gate.js'

describe('bucketResetHandler', () => {
  const band = (capacity: number) => [{ label: 'hour', capacity, window: '1h' }]

  it('is called for exactly the rules whose buckets are reset', async () => {
    const rules = { id: 'api', rules: ['a', 'b', 'c'].map((id) => ({ id, name: id, bands: band(10) })) }
    const resets: BucketReset[] = []
    const gate = await createFluxGate({ rules, bucketResetHandler: { bucketsReset: (reset) => resets.push(reset) } })
    const [a, b] = rules.rules
    // One rule gets another name, which does not affect its buckets, one another capacity, and one is removed.
    Object.assign(a as object, { name: 'renamed' })
    Object.assign(b as object, { bands: band(20) })
    rules.rules.pop()
    await gate.reload()
    expect(resets).toEqual([{ ruleSetId: 'api', ruleIds: ['b', 'c'] }])
    await gate.reset({ ruleSetId: 'api', ruleId: 'a' })
    expect(resets.slice(1)).toEqual([{ ruleSetId: 'api', ruleIds: ['a'] }])
    await gate.reload()
    await gate.reset({ ruleSetId: 'api', ruleId: 'a', key: 'anonymous' })
    expect(resets).toHaveLength(2)
    await gate.close()
  })
})
