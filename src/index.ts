export type {
  BandResult,
  BucketGroup,
  BucketStore,
  Charge,
  ChargeResult,
  Refund,
  SharedGenerations,
  SharedResets,
  StoreAvailability,
} from './core/bucket-store.js'
export { type Clock, systemClock } from './core/clock.js'
export type { ActiveBan, BanInput, BanQuery, BanStore } from './core/contracts/ban-store.js'
export type { BucketReset, BucketResetHandler } from './core/contracts/bucket-reset-handler.js'
export type { KeyResolver } from './core/contracts/key-resolver.js'
export type { Override, OverrideQuery, OverrideStore } from './core/contracts/override-store.js'
export type { EditedRules, ReloadRequest, ReloadStrategy, RuleSetProvider } from './core/contracts/rule-set-provider.js'
export type {
  Edit,
  HistoryEntry,
  Page,
  PageQuery,
  RuleDocument,
  RuleQuery,
  RuleSetDocument,
  RuleSetHead,
  RuleStore,
} from './core/contracts/rule-store.js'
export type {
  CallLimit,
  JointCheck,
  JointDecision,
  JointOptions,
  JointPart,
} from './core/decision/joint/joint-check.js'
export type { BandDecision, Decision, Reason } from './core/decision.js'
export { type ErrorCode, FluxGateError, type ValidationIssue } from './core/errors.js'
export type {
  ExplainedBand,
  ExplainedBucket,
  ExplainedRule,
  ExplainOptions,
  Explanation,
  FailedCondition,
  RuleStatus,
} from './core/explain/explanation.js'
export type { CheckOptions, Handler } from './core/handler.js'
export type { Hold, HoldId, HoldStorage } from './core/holds/hold-storage.js'
export type { Acquired } from './core/holds/keep-hold.js'
export { jsonText, parseJson } from './core/json/source-text.js'
export type { NamedResolver, NamedResolvers } from './core/keys/scope-key-resolver.js'
export type { MatchedContext, RequestContext } from './core/request-context.js'
export type {
  OnExpire,
  Reservation,
  ReserveOptions,
  SettledReservation,
  SettleOptions,
} from './core/reservations/reservation.js'
export type {
  BucketState,
  ChargedCost,
  ReservationRequest,
  ReservationStorage,
  ReservationTerms,
  ReservedPermits,
  ReservedState,
  ReserveOutcome,
  Settlement,
  SettlementRequest,
  SettleOutcome,
} from './core/reservations/reservation-storage.js'
export type { AlgorithmName, Band, LimitScope, OnStoreFailure, Policy, Rule, RuleSet } from './core/rule.js'
export type { CandidateControl } from './gate/candidates/candidate-control.js'
export { createFluxGate } from './gate/create-flux-gate.js'
export type { GateEvents, GateListener } from './gate/events.js'
export type { FluxGate } from './gate/flux-gate.js'
export type { GateHealth } from './gate/health/gate-health.js'
export type { LimiterBans } from './gate/limiter/bans.js'
export type { ConsumeOptions } from './gate/limiter/consume-options.js'
export {
  createLimiter,
  type Limiter,
  type LimiterOptions,
  type LimiterReserveOptions,
  type RunResult,
  type WaitOptions,
} from './gate/limiter/create-limiter.js'
export type { LimiterOverrides } from './gate/limiter/overrides.js'
export type { FluxGateOptions } from './gate/options.js'
export type { ContextCustomizer } from './middleware/express.js'
export { type FileRuleStoreOptions, fileRuleStore } from './rules/file/file-rule-store.js'
export { fileRules } from './rules/file-provider.js'
export { objectRules } from './rules/object-provider.js'
export type { BandInput, CallBandInput, RuleInput, RuleSetInput, SingleRuleInput } from './rules/schema/input.js'
export { parseRuleSets } from './rules/schema/parse-rules.js'
export { type CopyOptions, type CopyReport, copyRules, exportRules, importRules } from './rules/store/copy-rules.js'
export { type MemoryStore, type MemoryStoreOptions, memoryStore } from './stores/memory/memory-store.js'
export { type ResilientOptions, resilient } from './stores/resilient/resilient.js'
export type {
  CandidateCounts,
  CandidateKeyCounts,
  CandidateReport,
  CandidateRuleCounts,
} from './telemetry/candidates/report.js'
export type { Exemplar } from './telemetry/exemplar.js'
export type { MetricsFormat } from './telemetry/exposition/exposition.js'
export type { CollectedMetric, MetricFamily } from './telemetry/metrics.js'
export type { WarningLogger, Warnings } from './validation/warnings.js'
