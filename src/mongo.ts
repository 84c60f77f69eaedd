/** The entry `fluxgate-js/mongo`. */
export type { MongoDatabase } from './rules/mongo/database.js'
export { type MongoConnection, type MongoRuleStoreOptions, mongoRuleStore } from './rules/mongo/mongo-rule-store.js'
