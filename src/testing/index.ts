export {
  bucketStoreContract,
  type ContractOptions,
  type StoreFactory,
  type TestRunner,
} from './bucket-store-contract.js'
export { type Comparison, compareWithModel } from './compare-with-model.js'
export type { HandlerBed, HandlerFactory, HandlerGiven } from './handlers/handler-bed.js'
export { handlerContract } from './handlers/handler-contract.js'
export { type ManualClock, manualClock } from './manual-clock.js'
export { type ReferenceStore, referenceStore } from './models/reference-store.js'
export {
  type ProviderPlace,
  type ProviderPlaceFactory,
  ruleSetProviderContract,
} from './rule-stores/rule-set-provider-contract.js'
export {
  type RulePlace,
  type RulePlaceFactory,
  type RuleStoreContractOptions,
  ruleStoreContract,
} from './rule-stores/rule-store-contract.js'
