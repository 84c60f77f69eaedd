import { describe, it } from 'vitest'
import { bucketStoreContract } from '../testing/bucket-store-contract.js'
import { memoryStore } from './memory.js'
import { resilient } from './resilient.js'

describe('resilient', () =>
  bucketStoreContract(it, (clock) => resilient(memoryStore({ clock }), { clock }), { histories: 20 }))
