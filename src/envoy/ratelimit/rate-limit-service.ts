import type { JointCheck, JointDecision, JointOptions } from '../../core/decision/joint/joint-check.js'
import type { BandDecision, Decision } from '../../core/decision.js'
import type { RequestContext } from '../../core/request-context.js'
import type { Rule, RuleSet } from '../../core/rule.js'
import type { RateLimitHeaders } from '../../http/rate-limit-headers.js'
import type { UnaryCall } from '../grpc/method.js'
import { GrpcError } from '../grpc/status.js'
import { DelayedCall } from './delayed-call.js'
import { checkOf } from './descriptor-check.js'
import { isUnlimited, type NameOfRule, statusOf } from './descriptor-status.js'
import { codes, type Descriptor, type DescriptorStatus, decodeRequest, encodeResponse } from './messages.js'

/** The part of a gate that decides. */
export interface RateLimitGate {
  readonly ruleSets: readonly RuleSet[]
  decideTogether(checks: readonly JointCheck[], options?: JointOptions): JointDecision | Promise<JointDecision>
}

export interface RateLimitServiceOptions {
  readonly gate: RateLimitGate
  readonly headers: RateLimitHeaders
}

/** envoy.service.ratelimit.v3.RateLimitService: the domain is a rule set, and all descriptors of a call are one decision. */
export class RateLimitService {
  readonly #options: RateLimitServiceOptions
  readonly #nameOf: NameOfRule

  constructor(options: RateLimitServiceOptions) {
    this.#options = options
    this.#nameOf = ruleNames(options.gate)
  }

  /** Decides synchronously if the buckets are in this process. */
  shouldRateLimit(message: Buffer, call: UnaryCall): Buffer | Promise<Buffer> {
    const { domain, descriptors, hitsAddend } = decodeRequest(message)
    if (domain === '') throw new GrpcError('INVALID_ARGUMENT', 'domain must not be empty: it names the rule set.')
    if (descriptors.length === 0)
      throw new GrpcError('INVALID_ARGUMENT', 'descriptors must have at least one descriptor.')
    const headers = traceHeaders(call)
    const checks: JointCheck[] = new Array(descriptors.length)
    for (let i = 0; i < descriptors.length; i++)
      checks[i] = checkOf(descriptors[i] as Descriptor, hitsAddend || 1, headers)
    const delayed = new DelayedCall(domain, call)
    const decided = this.#options.gate.decideTogether(checks, delayed)
    if (decided instanceof Promise) return decided.then((joint) => this.#answer(joint, delayed))
    return this.#answer(decided, delayed)
  }

  #answer(joint: JointDecision, delayed: DelayedCall): Buffer | Promise<Buffer> {
    const { allowed, reason } = joint.decision
    if (reason === 'STORE_FAILURE' && !allowed)
      throw new GrpcError('UNAVAILABLE', 'The bucket store is unavailable, and the rules deny requests without it.')
    return delayed.departure === undefined ? this.#encode(joint, 0) : this.#answerLater(joint, delayed)
  }

  /** Envoy cannot delay a request, so the answer is delayed. If the call ends earlier, its permits are refunded. */
  async #answerLater(joint: JointDecision, delayed: DelayedCall): Promise<Buffer> {
    const startedAt = performance.now()
    const how = await delayed.departure
    if (how === 'ABORTED') throw new GrpcError('CANCELLED', 'The call ended while it was delayed.')
    if (how === 'CLOSED') throw new GrpcError('UNAVAILABLE', 'The server stopped while the call was delayed.')
    return this.#encode(joint, performance.now() - startedAt)
  }

  #encode({ decision, parts }: JointDecision, heldMs: number): Buffer {
    const nowMs = decision.decidedAt + heldMs
    const statuses: DescriptorStatus[] = new Array(parts.length)
    for (let i = 0; i < parts.length; i++)
      statuses[i] = statusOf(parts[i] as JointDecision['parts'][0], decision, nowMs, this.#nameOf)
    return encodeResponse({
      overallCode: decision.allowed ? codes.ok : codes.overLimit,
      statuses,
      headers: this.#options.headers.of(withoutUnlimited(decision), nowMs),
    })
  }
}

/** Clients need not know about limits that they cannot reach. */
function withoutUnlimited(decision: Decision): Decision {
  const { bands } = decision
  for (let i = 0; i < bands.length; i++)
    if (isUnlimited(bands[i] as BandDecision)) {
      const limited = bands.filter((band) => !isUnlimited(band))
      return { ...decision, bands: limited, ...(limited.length === 0 && { ruleId: null }) }
    }
  return decision
}

/** Looks up names in the current rule sets, which are replaced as a whole. Few rules have a name. */
function ruleNames(gate: RateLimitGate): NameOfRule {
  let known: readonly RuleSet[] | undefined
  let names = new Map<string, ReadonlyMap<string, string>>()
  return (ruleSetId, ruleId) => {
    const { ruleSets } = gate
    if (ruleSets !== known) {
      known = ruleSets
      names = new Map(ruleSets.map(({ id, rules }) => [id, namesOf(rules)]))
    }
    return names.get(ruleSetId ?? '')?.get(ruleId)
  }
}

const namesOf = (rules: readonly Rule[]): ReadonlyMap<string, string> =>
  new Map(rules.flatMap(({ id, name }) => (name === undefined ? [] : [[id, name] as const])))

/** The trace headers of the call, for statistics; undefined without any. */
function traceHeaders(call: UnaryCall): RequestContext['headers'] {
  const traceparent = call.header('traceparent')
  const traceId = call.header('x-trace-id')
  return traceparent === undefined && traceId === undefined ? undefined : { traceparent, 'x-trace-id': traceId }
}
