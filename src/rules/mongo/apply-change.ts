import { eachInSteps, inSlices, type Steps } from '../../core/scheduling/steps.js'
import {
  batchOptions,
  isDuplicate,
  type MongoCollections,
  type MongoDocument,
  type MongoOperation,
} from './database.js'
import { documentId, fromMongo, toMongo } from './document.js'
import { latestHeads, type MongoHead, type PendingChange, pendingChange, ruleMarks } from './head.js'
import { historyDocument } from './history.js'

/** The number of history entries per rule set. */
const maxHistory = 1_000
/** The driver encodes the operations of a call in one turn of the event loop. FerretDB hangs at a hundred updates in one call. */
const operationsPerCall = 64

/**
 * Applies a committed change to the documents of the rules, writes its history entry and marks the head as done. It is
 * idempotent and may run concurrently: a repeated step has no effect or is detected by version.
 */
export async function applyChange(collections: MongoCollections, head: MongoHead): Promise<void> {
  const { rules, sets, history } = collections
  const { ruleSetId, version, commit } = head
  const todo = await inSlices(pendingChange(head))
  if (todo === undefined) return
  const documents = await rules.find({ ruleSetId }, batchOptions).toArray()
  const operations = await inSlices(operationsOf(ruleSetId, todo, documents))
  for (let at = 0; at < operations.length; at += operationsPerCall)
    await ignoreDuplicates(rules.bulkWrite(operations.slice(at, at + operationsPerCall), { ordered: false }))
  await ignoreDuplicates(history.insertOne(await inSlices(historyDocument(head, todo.entry))))
  await sets.updateOne({ _id: head._id, commit }, { $unset: { todo: '' } })
  await sets.deleteMany({ ruleSetId, version: { $lt: version } })
  await history.deleteMany({ ruleSetId, version: { $lte: version - maxHistory } })
  await removeStrayDocuments(collections, head, todo)
}

/** Each operation applies only if the document still has the version that was read; a later change is kept. */
function* operationsOf(
  ruleSetId: string,
  { put, remove }: PendingChange,
  documents: readonly MongoDocument[],
): Steps<MongoOperation[]> {
  const operations: MongoOperation[] = []
  const present = new Map<unknown, MongoDocument>()
  const removed = new Set(remove)
  const changed = new Set([...remove, ...put.map(({ id }) => id)])
  yield* eachInSteps(documents, (document) => {
    const { id } = fromMongo(document)
    if (!changed.has(id)) return
    if (document._id === documentId(ruleSetId, id) && !removed.has(id)) present.set(document._id, document)
    else operations.push({ deleteOne: { filter: unchanged(document) } })
  })
  yield* eachInSteps(put, (rule) => {
    const replacement = toMongo(ruleSetId, rule)
    const document = present.get(replacement._id)
    operations.push(
      document === undefined
        ? { insertOne: { document: replacement } }
        : { replaceOne: { filter: unchanged(document), replacement } },
    )
  })
  return operations
}

const unchanged = ({ _id, version }: MongoDocument): MongoDocument => ({ _id, version: version ?? null })

/** Removes documents that a slow process inserted after another process had already removed them. */
async function removeStrayDocuments(
  { rules, sets }: MongoCollections,
  head: MongoHead,
  { put }: PendingChange,
): Promise<void> {
  const { ruleSetId } = head
  const found = await sets.find({ ruleSetId, version: { $gt: head.version } }).toArray()
  const latest = latestHeads(found).get(ruleSetId)
  if (latest === undefined) return
  const existing = new Set((await inSlices(ruleMarks(latest))).map(([id]) => id))
  const strays = put.filter(({ id }) => !existing.has(id))
  for (const { id, version } of strays) await rules.deleteMany({ _id: documentId(ruleSetId, id), version })
}

async function ignoreDuplicates(work: Promise<unknown>): Promise<void> {
  try {
    await work
  } catch (error) {
    if (!isDuplicate(error)) throw error
  }
}
