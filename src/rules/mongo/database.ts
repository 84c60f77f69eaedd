/** The subset of the official driver's `Db` that is used here. */
export interface MongoDatabase {
  /** The name of the database. */
  readonly databaseName: string
  /** Returns a collection, with the given read and write concerns. */
  collection(name: string, options?: object): MongoCollection
}

export interface MongoCollection {
  find(filter: object, options?: object): { toArray(): Promise<MongoDocument[]> }
  insertOne(document: object): Promise<unknown>
  bulkWrite(operations: MongoOperation[], options?: object): Promise<unknown>
  updateOne(filter: object, update: object): Promise<unknown>
  deleteMany(filter: object): Promise<unknown>
  watch(pipeline: object[], options?: object): MongoChangeStream
  createIndexes(indexes: { key: Record<string, 1 | -1>; name?: string }[]): Promise<unknown>
}

export type MongoOperation =
  | { insertOne: { document: MongoDocument } }
  | { replaceOne: { filter: MongoDocument; replacement: MongoDocument } }
  | { deleteOne: { filter: MongoDocument } }

export interface MongoChangeStream {
  /** Returns the next change, if any. The first call opens the stream. */
  tryNext(): Promise<unknown>
  next(): Promise<unknown>
  close(): Promise<void>
  readonly resumeToken: unknown
}

export type MongoDocument = Readonly<Record<string, unknown>>

/** Majority reads and writes: a change is visible to every later read, even after a failover of the replica set. */
const concerns = {
  readPreference: 'primary',
  readConcern: { level: 'majority' },
  writeConcern: { w: 'majority' },
  ignoreUndefined: true,
}

/** Limits the batch size, because the driver decodes a whole batch in one turn of the event loop. */
export const batchOptions = { batchSize: 100 }

export interface MongoCollections {
  /** One document per rule. Other programs may read and write them too. */
  readonly rules: MongoCollection
  /** The last change of each rule set and the resulting state. */
  readonly sets: MongoCollection
  readonly history: MongoCollection
}

export function collectionsOf(database: MongoDatabase, name: string): MongoCollections {
  return {
    rules: database.collection(name, concerns),
    sets: database.collection(`${name}_sets`, concerns),
    history: database.collection(`${name}_history`, concerns),
  }
}

/** Ignores existing indexes with other names or options, and missing permission to create indexes. */
export async function createIndexes({ rules, sets, history }: MongoCollections): Promise<void> {
  const create = async (collection: MongoCollection, ...keys: Record<string, 1 | -1>[]): Promise<void> => {
    try {
      await collection.createIndexes(keys.map((key) => ({ key })))
    } catch (error) {
      if (!['IndexOptionsConflict', 'IndexKeySpecsConflict', 'Unauthorized'].includes(codeNameOf(error))) throw error
    }
  }
  await create(rules, { ruleSetId: 1, enabled: 1 })
  await create(rules, { ruleSetId: 1, priority: -1 })
  await create(sets, { ruleSetId: 1 })
  await create(history, { ruleSetId: 1, version: -1 })
}

const codeNameOf = (error: unknown): string =>
  error instanceof Error && 'codeName' in error ? String(error.codeName) : ''

export const isDuplicate = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 11_000

export const isUnauthorized = (error: unknown): boolean => codeNameOf(error) === 'Unauthorized'
