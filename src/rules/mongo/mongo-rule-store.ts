import { type Clock, systemClock } from '../../core/clock.js'
import { FluxGateError, messageOf } from '../../core/errors.js'
import type { RuleStore } from '../../core/rule-store.js'
import { ruleStoreOf } from '../store/rule-store-of.js'
import type { MongoDatabase } from './database.js'
import { MongoStorage } from './storage.js'

export interface MongoRuleStoreOptions {
  /** Default: the one that the URI names, else `fluxgate`. A `Db` is one already. */
  readonly database?: string
  /** Default `rate_limit_rules`; what is kept besides the rules is in collections whose names begin with it. */
  readonly collection?: string
  readonly clock?: Clock
}

/** As much of a client of the official driver as is used here; its `MongoClient` fits. */
export interface MongoConnection {
  db(name?: string): MongoDatabase
}

interface Place {
  readonly connect: () => Promise<MongoDatabase>
  readonly disconnect: () => Promise<void>
  /** As it appears in messages. */
  readonly name: string
}

const usualDatabase = 'fluxgate'

/**
 * Rules in MongoDB, shared by everybody who names the same collection. Takes a `mongodb://` or `mongodb+srv://` URI, or a
 * `MongoClient` or `Db` of the official driver, which stays the caller's to close.
 */
export function mongoRuleStore(
  where: string | MongoConnection | MongoDatabase,
  options: MongoRuleStoreOptions = {},
): RuleStore {
  const { database, collection = 'rate_limit_rules', clock = systemClock } = options
  const { connect, disconnect, name } = typeof where === 'string' ? atUri(where, database) : atClient(where, database)
  const source = `${name}, collection ${collection}`
  return ruleStoreOf(new MongoStorage({ connect, disconnect, collection, source, clock }), { clock })
}

/** The driver is loaded only here, because only those who come here need it. */
function atUri(uri: string, asked: string | undefined): Place {
  const [, hosts, named] = /^mongodb(?:\+srv)?:\/\/(?:[^/]*@)?([^/@?]+)(?:\/([^?]*))?(?:\?.*)?$/.exec(uri) ?? []
  if (hosts === undefined) throw addressInvalid()
  const database = asked ?? (named ? decodeURIComponent(named) : usualDatabase)
  let client: (MongoConnection & { close(): Promise<void> }) | undefined
  return {
    name: `MongoDB at ${hosts}, database ${database}`,
    async connect() {
      const { MongoClient } = await import('mongodb').catch((cause: unknown) => {
        throw notInstalled(cause)
      })
      try {
        client ??= new MongoClient(uri, clientOptions(uri))
      } catch (cause) {
        throw addressInvalid(cause)
      }
      return client.db(database)
    },
    async disconnect() {
      await client?.close()
    },
  }
}

/** Whoever edits, and a gate that starts, learns soon that there is no server, unless the URI says otherwise. */
function clientOptions(uri: string): object {
  const defaults = { appName: 'fluxgate', serverSelectionTimeoutMS: 5_000, connectTimeoutMS: 5_000 }
  const isGiven = (name: string): boolean => uri.toLowerCase().includes(`${name.toLowerCase()}=`)
  return Object.fromEntries(Object.entries(defaults).filter(([name]) => !isGiven(name)))
}

function atClient(where: MongoConnection | MongoDatabase, asked: string | undefined): Place {
  if ('db' in where && typeof where.db === 'function') {
    const database = asked ?? usualDatabase
    return {
      name: `MongoDB, database ${database}`,
      connect: async () => where.db(database),
      disconnect: async () => {},
    }
  }
  if (!('collection' in where && typeof where.collection === 'function')) throw addressInvalid()
  return {
    name: `MongoDB, database ${where.databaseName}`,
    connect: async () => where,
    disconnect: async () => {},
  }
}

/** Does not show what was given: it may hold a password. */
function addressInvalid(cause?: unknown): FluxGateError {
  const reason = cause === undefined ? '' : ` (${messageOf(cause).replace(/mongodb(\+srv)?:\/\/\S*/g, 'the URI')})`
  return new FluxGateError(
    'FLUXGATE_CONFIG_INVALID',
    `mongo: found something else${reason}; allowed: mongodb://user:password@host:port/database, mongodb+srv://…, a MongoClient or a Db.`,
    cause === undefined ? {} : { cause },
  )
}

const notInstalled = (cause: unknown): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_CONFIG_INVALID',
    'The package mongodb, which connects to MongoDB, could not be loaded: run `npm install mongodb`, or give a client of your own.',
    { cause },
  )
