/** Entry `fluxgate-js/mongo`: rule store in MongoDB. */
export type { MongoDatabase } from './rules/mongo/database.js'
export { type MongoConnection, type MongoRuleStoreOptions, mongoRuleStore } from './rules/mongo/mongo-rule-store.js'
