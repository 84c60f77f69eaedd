/** The entry `fluxgate/mongo`. */
export type { MongoDatabase } from '../rules/mongo/database.js'
export { type MongoConnection, type MongoRuleStoreOptions, mongoRuleStore } from './mongo-rule-store.js'
