import { it } from 'vitest'
import { algorithmNames } from '../core/rule.js'
import { memoryStore } from '../stores/memory.js'
import { compareWithModel } from './compare-with-model.js'

for (const a of algorithmNames)
  it('agrees ' + a, async () => {
    for (let seed = 1; seed <= 2000; seed++)
      await compareWithModel((clock) => memoryStore({ clock }), {
        seed,
        steps: 100,
        maxRules: 1,
        maxBands: 1,
        algorithms: [a],
        maxCapacity: seed % 2 ? 20 : 1e9,
      })
  })
it('agrees mixed', async () => {
  for (let seed = 1; seed <= 1000; seed++)
    await compareWithModel((clock) => memoryStore({ clock }), { seed, steps: 100, maxCapacity: seed % 2 ? 20 : 1e9 })
}, 100000)
