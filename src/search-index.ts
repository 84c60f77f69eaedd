/** Entry `fluxgate-js/search-index`: searchable records in Redis. */
export type { RedisNode } from './redis/client/open/address.js'
export type { RedisOptions } from './redis/client/open/target.js'
export { type SearchIndexOptions, searchIndex } from './redis/search-index/create-search-index.js'
export type {
  CompositeField,
  IndexDefinition,
  IndexField,
  NumberField,
  SuggestField,
  TagsField,
  TextField,
} from './redis/search-index/definition.js'
export type { FindQuery } from './redis/search-index/query.js'
export type { RebuildReport } from './redis/search-index/rebuild.js'
export type { Found, Page, SearchIndex, Suggestion } from './redis/search-index/search-index.js'
export type { VerifyReport } from './redis/search-index/verify.js'
