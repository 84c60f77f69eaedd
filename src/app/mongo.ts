/** Entry `fluxgate/mongo`: rule store in MongoDB. */
export type { MongoDatabase } from '../rules/mongo/database.js'
export { type MongoConnection, type MongoRuleStoreOptions, mongoRuleStore } from './mongo-rule-store.js'
