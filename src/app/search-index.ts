/** Entry `fluxgate/search-index`: searchable records in Redis. */
export type {
  CompositeField,
  IndexDefinition,
  IndexField,
  NumberField,
  SuggestField,
  TagsField,
  TextField,
} from '../redis/search-index/definition.js'
export type { FindQuery } from '../redis/search-index/query.js'
export type { RebuildReport } from '../redis/search-index/rebuild.js'
export type { Found, Page, SearchIndex, Suggestion } from '../redis/search-index/search-index.js'
export type { VerifyReport } from '../redis/search-index/verify.js'
export { type SearchIndexOptions, searchIndex } from './create-search-index.js'
export type { RedisNode } from './open-redis-address.js'
export type { RedisOptions } from './open-redis-target.js'
