import type { BucketStore, Demand } from '../core/bucket-store.js'
import type { Clock } from '../core/clock.js'
import { checkContext } from '../core/decision/check-context.js'
import { checkPermits } from '../core/decision/permits.js'
import { RateLimiter, throwIfAborted } from '../core/decision/rate-limiter.js'
import { type CompiledRuleSet, MissingKey, type Snapshot } from '../core/decision/snapshot.js'
import { unmeteredDecision } from '../core/decision/unmetered-decision.js'
import type { Decision, Reason } from '../core/decision.js'
import { isStoreTrouble } from '../core/errors.js'
import type { CheckOptions, Handler } from '../core/handler.js'
import type { RequestContext } from '../core/request-context.js'
import type { OnStoreFailure } from '../core/rule.js'
import type { WaitingRoom } from '../core/waiting/waiting-room.js'
import { WithoutStore } from './without-store.js'

export interface StandaloneOptions {
  /** The rules in force; asked once per decision, which then keeps what it got. */
  readonly snapshot: () => Snapshot
  readonly store: BucketStore
  /** Limits in this process while `store` fails. */
  readonly localStore: BucketStore
  readonly room: WaitingRoom
  readonly clock: Clock
  /** What becomes of a request that no rule covers. */
  readonly missingRuleBehavior: 'ALLOW' | 'DENY'
  /** For rules that do not say. */
  readonly onStoreFailure: OnStoreFailure
  /** The part of each limit that one process takes over while the store fails: 1 for all of it. */
  readonly localShare: number
  readonly onStoreError?: (error: unknown) => void
  readonly onStoreAnswer?: () => void
}

const noOptions: CheckOptions = Object.freeze({})

/** Answers in this process: one rule snapshot, one call to the store, and what to do when that fails. */
export class StandaloneHandler implements Handler {
  readonly #options: StandaloneOptions
  readonly #limiter: RateLimiter
  readonly #withoutStore: WithoutStore

  constructor(options: StandaloneOptions) {
    this.#options = options
    this.#limiter = new RateLimiter(options.store, options.room, { onStoreAnswer: options.onStoreAnswer })
    this.#withoutStore = new WithoutStore(options)
  }

  check(context: RequestContext, options: CheckOptions = noOptions): Promise<Decision> {
    try {
      const answer = this.#decide(context, options)
      return answer instanceof Promise ? answer : Promise.resolve(answer)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  checkNow(context: RequestContext, options: CheckOptions = noOptions): Decision | undefined {
    // What #decide answers with a store in this process is never a promise.
    return this.#limiter.isSync ? (this.#decide(context, options) as Decision) : undefined
  }

  checkAddress(clientIp: string, options: CheckOptions): Decision | undefined {
    const ruleSet = this.#ruleSet(options.ruleSetId)
    if (ruleSet === undefined || !ruleSet.lone?.group.countsAddresses) return undefined
    return this.#decideLone(ruleSet, { clientIp }, checkPermits(options.permits ?? 1), options)
  }

  /** Not an async function: with a store in this process the answer is there already. */
  #decide(context: RequestContext, options: CheckOptions): Decision | Promise<Decision> {
    const ruleSet = this.#ruleSet(options.ruleSetId)
    if (ruleSet === undefined) return this.#uncovered('NO_RULE_SET', options.ruleSetId ?? null)
    const asked = checkContext(context)
    const permits = checkPermits(options.permits ?? 1)
    const atOnce = this.#decideLone(ruleSet, asked, permits, options)
    if (atOnce !== undefined) return atOnce
    const demands = ruleSet.demands(asked, permits)
    if (demands instanceof MissingKey) return this.#unidentified(ruleSet, demands)
    if (demands.length === 0) return this.#uncovered('NO_RULE', ruleSet.ruleSet.id)
    return this.#limiter.isSync
      ? this.#limiter.decideSync(ruleSet.ruleSet.id, demands, options)
      : this.#ask(ruleSet, demands, options)
  }

  /** Undefined if there is more to it: other rules, nobody to count, a peek, or a store that has to be waited for. */
  #decideLone(
    { ruleSet, lone }: CompiledRuleSet,
    context: RequestContext,
    permits: number,
    options: CheckOptions,
  ): Decision | undefined {
    if (lone === undefined || options.peek || !this.#limiter.isSync) return undefined
    const key = lone.keyOf(context)
    if (key === undefined) return undefined
    throwIfAborted(options)
    return this.#limiter.decideOne(ruleSet.id, lone.claim, key, permits * lone.rule.permits, options)
  }

  async refund(context: RequestContext, options: Pick<CheckOptions, 'ruleSetId' | 'permits'> = {}): Promise<void> {
    const permits = checkPermits(options.permits ?? 1)
    const demands = this.#ruleSet(options.ruleSetId)?.demands(checkContext(context), permits) ?? []
    if (demands instanceof MissingKey) return
    await this.#limiter.refund(demands.map(({ group, key, permits }) => ({ group, key, permits })))
  }

  async #ask(ruleSet: CompiledRuleSet, demands: readonly Demand[], options: CheckOptions): Promise<Decision> {
    throwIfAborted(options)
    try {
      return await this.#limiter.decide(ruleSet.ruleSet.id, demands, options)
    } catch (error) {
      if (isStoreTrouble(error)) this.#options.onStoreError?.(error)
      const policyOf = ({ group }: Demand): OnStoreFailure =>
        ruleSet.rules.get(group.ruleId)?.rule.onStoreFailure ?? this.#options.onStoreFailure
      return this.#withoutStore.decide(ruleSet.ruleSet.id, demands, policyOf, options)
    }
  }

  #ruleSet(asked: string | undefined): CompiledRuleSet | undefined {
    const snapshot = this.#options.snapshot()
    return asked === undefined ? snapshot.fallback : snapshot.ruleSets.get(asked)
  }

  #unidentified({ ruleSet }: CompiledRuleSet, { rule }: MissingKey): Decision {
    return unmeteredDecision(false, 'MISSING_KEY', this.#now(), { ruleSetId: ruleSet.id, ruleId: rule.id })
  }

  #uncovered(reason: Reason, ruleSetId: string | null): Decision {
    return unmeteredDecision(this.#options.missingRuleBehavior === 'ALLOW', reason, this.#now(), { ruleSetId })
  }

  #now(): number {
    return this.#options.clock.now()
  }
}
