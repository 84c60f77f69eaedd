import { type Clock, systemClock } from '../../core/clock.js'
import type { RuleStore } from '../../core/contracts/rule-store.js'
import { FluxGateError, messageOf } from '../../core/errors.js'
import { createRuleStore } from '../store/create-rule-store.js'
import type { MongoDatabase } from './database.js'
import { MongoStorage } from './storage.js'

/** Options of `mongoRuleStore`. */
export interface MongoRuleStoreOptions {
  /** Default: the database of the URI, or `fluxgate`. Ignored for a `Db`. */
  readonly database?: string
  /** Collection of the rules; default `rate_limit_rules`. Other data is in collections with this prefix. */
  readonly collection?: string
  /** Clock for timestamps, for tests. */
  readonly clock?: Clock
}

/** The part of a `MongoClient` that is used. */
export interface MongoConnection {
  /** Returns a database; without a name, the one of the connection string. */
  db(name?: string): MongoDatabase
}

interface MongoTarget {
  readonly connect: () => Promise<MongoDatabase>
  readonly disconnect: () => Promise<void>
  /** Name for messages. */
  readonly name: string
}

const defaultDatabase = 'fluxgate'

/**
 * Opens a rule store in MongoDB. All processes that use the same collection share its rules.
 *
 * @param where a `mongodb://` or `mongodb+srv://` URI, or a `MongoClient` or `Db` of the official driver. The caller closes a
 *   client that it passes in.
 * @throws FluxGateError if `where` is invalid. A server that is down is reported by the first call.
 */
export function mongoRuleStore(
  where: string | MongoConnection | MongoDatabase,
  options: MongoRuleStoreOptions = {},
): RuleStore {
  const { database, collection = 'rate_limit_rules', clock = systemClock } = options
  const { connect, disconnect, name } =
    typeof where === 'string' ? targetOfUri(where, database) : targetOfClient(where, database)
  const source = `${name}, collection ${collection}`
  return createRuleStore(new MongoStorage({ connect, disconnect, collection, source, clock }), { clock })
}

/** In a try block, because bundlers then accept that the optional dependency is missing. */
async function importDriver() {
  try {
    return await import('mongodb')
  } catch (cause) {
    throw notInstalled(cause)
  }
}

/** Loads the driver on first use, because it is an optional dependency. */
function targetOfUri(uri: string, requested: string | undefined): MongoTarget {
  const [, hosts, named] = /^mongodb(?:\+srv)?:\/\/(?:[^/]*@)?([^/@?]+)(?:\/([^?]*))?(?:\?.*)?$/.exec(uri) ?? []
  if (hosts === undefined) throw addressInvalid()
  const database = requested ?? (named ? decodeURIComponent(named) : defaultDatabase)
  let client: (MongoConnection & { close(): Promise<void> }) | undefined
  return {
    name: `MongoDB at ${hosts}, database ${database}`,
    async connect() {
      const { MongoClient } = await importDriver()
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

/** Short default timeouts, so that edits and gates that start fail soon if there is no server. The URI may override them. */
function clientOptions(uri: string): object {
  const defaults = { appName: 'fluxgate', serverSelectionTimeoutMS: 5_000, connectTimeoutMS: 5_000 }
  const isInUri = (name: string): boolean => uri.toLowerCase().includes(`${name.toLowerCase()}=`)
  return Object.fromEntries(Object.entries(defaults).filter(([name]) => !isInUri(name)))
}

function targetOfClient(where: MongoConnection | MongoDatabase, requested: string | undefined): MongoTarget {
  if ('db' in where && typeof where.db === 'function') {
    const database = requested ?? defaultDatabase
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

/** The message does not show the URI, because it may contain a password. */
function addressInvalid(cause?: unknown): FluxGateError {
  const reason = cause === undefined ? '' : ` (${messageOf(cause).replace(/mongodb(\+srv)?:\/\/\S*/g, 'the URI')})`
  return new FluxGateError(
    'FLUXGATE_CONFIG_INVALID',
    `The MongoDB address is invalid${reason}. Pass mongodb://user:password@host:port/database, mongodb+srv://…, a MongoClient or a Db.`,
    cause === undefined ? {} : { cause },
  )
}

const notInstalled = (cause: unknown): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_CONFIG_INVALID',
    'Cannot load the mongodb package. Run `npm install mongodb`, or pass your own client.',
    { cause },
  )
