import { expect, it } from 'vitest'
import { finish } from '../../core/scheduling/steps.js'
import { planPutRuleSet } from '../store/plan-edit.js'
import { applyChange } from './apply-change.js'
import type { MongoCollection, MongoCollections, MongoDocument, MongoOperation } from './database.js'
import { toMongo } from './document.js'
import { createHead } from './head.js'

const rule = (id: string, capacity: number) => ({ id, bands: [{ capacity, window: '1s' }], version: 1 })

/** A collection that holds documents, and notes how it is asked for them and what is written. */
function notingCollection(documents: readonly MongoDocument[], reads: object[], writes: MongoOperation[][]) {
  const collection: Partial<MongoCollection> = {
    find(_filter, options = {}) {
      reads.push(options)
      return { toArray: async () => [...documents] }
    },
    async bulkWrite(operations) {
      writes.push(operations)
    },
    insertOne: async () => {},
    updateOne: async () => {},
    deleteMany: async () => {},
  }
  return collection as MongoCollection
}

it('a large change is read in batches and written in calls of 64 operations', async () => {
  const ids = Array.from({ length: 300 }, (_, i) => `r${i}`)
  const stored = { version: 1, removedVersion: 0, head: { id: 'api' }, rules: ids.map((id) => rule(id, 1)) }
  // One half changes, the other half is removed, and fifty are new.
  const wanted = [...ids.slice(0, 150), ...Array.from({ length: 50 }, (_, i) => `new${i}`)]
  const planning = { ruleSetId: 'api', stored, edit: { by: 'ann' }, at: '2026-01-31T12:00:00.000Z' }
  const change = finish(planPutRuleSet(planning, { id: 'api', rules: wanted.map((id) => rule(id, 2)) }))
  const head = finish(createHead(change ?? expect.unreachable()))
  const [reads, writes]: [object[], MongoOperation[][]] = [[], []]
  const rules = notingCollection(
    stored.rules.map((one) => toMongo('api', one)),
    reads,
    writes,
  )
  const others = notingCollection([], [], [])
  const collections: MongoCollections = { rules, sets: others, history: others }
  await applyChange(collections, head)
  expect(reads).toEqual([{ batchSize: 100 }])
  expect(writes.map(({ length }) => length)).toEqual([64, 64, 64, 64, 64, 30])
  const count = (kind: string) => writes.flat().filter((operation) => kind in operation).length
  expect([count('deleteOne'), count('replaceOne'), count('insertOne')]).toEqual([150, 150, 50])
})
