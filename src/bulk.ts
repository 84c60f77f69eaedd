/** Entry `fluxgate-js/bulk`: bulk loading into Redis with a report of failed records. */
export {
  bulkOverrides,
  type OverrideImportOptions,
  type OverrideImportReport,
} from './gate/overrides/bulk-overrides.js'
export type { BulkFormat, BulkOptions, BulkReport } from './redis/bulk/bulk-load.js'
export { type Command, encodeCommand } from './redis/bulk/commands/writer.js'
export { type BulkInput, bulkCheck, bulkEmit, bulkLoad } from './redis/bulk/open-bulk-load.js'
export type { BulkFailure, BulkProgress } from './redis/bulk/tally.js'
export type { RedisOptions } from './redis/client/open/target.js'
