import type { HandlerFixture, HandlerSetup } from './handlers/fixtures.js'
import type { RuleStorageFactory, RuleStorageFixture } from './rule-stores/contract.js'
import type { ProviderFactory, ProviderFixture } from './rule-stores/provider-contract.js'

export {
  bucketStoreContract,
  type ContractOptions,
  type StoreFactory,
  type TestRunner,
} from './bucket-store-contract.js'
export { type Comparison, compareWithModel } from './compare-with-model.js'
export { handlerContract } from './handlers/contract.js'
export type { HandlerFactory, HandlerFixture, HandlerSetup } from './handlers/fixtures.js'
export { type ManualClock, manualClock } from './manual-clock.js'
export { type ReferenceStore, referenceStore } from './models/reference-store.js'
export {
  type RuleStorageFactory,
  type RuleStorageFixture,
  type RuleStoreContractOptions,
  ruleStoreContract,
} from './rule-stores/contract.js'
export {
  type ProviderFactory,
  type ProviderFixture,
  ruleSetProviderContract,
} from './rule-stores/provider-contract.js'

/** @deprecated Use `HandlerFixture`. */
export type HandlerBed = HandlerFixture
/** @deprecated Use `HandlerSetup`. */
export type HandlerGiven = HandlerSetup
/** @deprecated Use `ProviderFixture`. */
export type ProviderPlace = ProviderFixture
/** @deprecated Use `ProviderFactory`. */
export type ProviderPlaceFactory = ProviderFactory
/** @deprecated Use `RuleStorageFixture`. */
export type RulePlace = RuleStorageFixture
/** @deprecated Use `RuleStorageFactory`. */
export type RulePlaceFactory = RuleStorageFactory
