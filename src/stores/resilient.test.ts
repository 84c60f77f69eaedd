import { describe, expect, it } from 'vitest'
import { bucketStoreContract } from '../testing/bucket-store-contract.js'
import { memoryStore } from './memory.js'
import { resilient } from './resilient.js'

describe('resilient', () => {
  bucketStoreContract(it, (clock) => resilient(memoryStore({ clock }), { clock }), { histories: 20 })

  it.each([{ timeoutMs: -1 }, { timeoutMs: '100' }, { failures: 0 }, { openMs: Number.NaN }])(
    'refuses %j',
    (options) => {
      expect(() => resilient(memoryStore(), options as object)).toThrow(
        expect.objectContaining({ code: 'FLUXGATE_ARGUMENT_INVALID' }),
      )
    },
  )
})
