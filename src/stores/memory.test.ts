import { describe, it } from 'vitest'
import { bucketStoreContract } from '../testing/bucket-store-contract.js'
import { memoryStore } from './memory.js'

describe('memoryStore', () => bucketStoreContract(it, (clock) => memoryStore({ clock }), { overrides: true }))
