/** Entry `fluxgate/bulk`: bulk loading into Redis with a report of failed records. */
export type { BulkFormat, BulkOptions, BulkReport } from '../redis/bulk/bulk-load.js'
export { type Command, encodeCommand } from '../redis/bulk/command-writer.js'
export type { BulkFailure, BulkProgress } from '../redis/bulk/tally.js'
export { type BulkInput, bulkCheck, bulkEmit, bulkLoad } from './bulk-load.js'
export { bulkOverrides, type OverrideImportOptions, type OverrideImportReport } from './bulk-overrides.js'
export type { RedisOptions } from './open-redis-target.js'
