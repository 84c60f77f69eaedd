import type { IncomingMessage } from 'node:http'
import type { ClientIpOf } from '../http/client-ip.js'
import type { Guard, GuardOverrides, Outcome } from '../http/guard.js'
import type { AccessLog } from './access-log.js'
import type { ClientRequest } from './client-request.js'
import type { Forwarding } from './forwarded.js'
import type { Answer } from './gateway-problem.js'
import type { RequestLimits } from './objection.js'
import type { Route } from './route.js'
import type { UpstreamPool } from './upstream/pool.js'

/** A route and the connections to where it leads. */
export interface OpenRoute {
  readonly route: Route
  readonly pool: UpstreamPool
}

/** What all requests share. */
export interface GatewayParts {
  readonly guard: Guard<IncomingMessage>
  readonly forwarding: Forwarding
  readonly clientIpOf: ClientIpOf
  /** In lower case. */
  readonly clientIpHeader: string
  readonly limits: RequestLimits
  readonly log: AccessLog | undefined
  /** The first route that takes the request. */
  findRoute(request: ClientRequest): OpenRoute | undefined
  /** No more requests on a connection after this one. */
  isDraining(): boolean
}

/** May go on, with these headers on its response; or is answered; or nobody is there any more. */
export type Admission = Passing | { readonly kind: 'ANSWER'; readonly answer: Answer } | { readonly kind: 'GONE' }

interface Passing {
  readonly kind: 'PASS'
  readonly headers: Headers
  readonly isHeld: boolean
}

const unlimited: Passing = Object.freeze({ kind: 'PASS', headers: Object.freeze({}), isHeld: false })

/** Asks all limits of a route, in order. At once where nothing takes time. */
export function admit(
  { guard }: GatewayParts,
  { limits }: Route,
  request: ClientRequest,
): Admission | Promise<Admission> {
  if (limits.length === 0) return unlimited
  if (limits.length > 1) return admitByAll(guard, limits, request)
  const outcome = guard.admitNow(request, request.message, limits[0])
  return outcome instanceof Promise ? outcome.then(asAdmission) : asAdmission(outcome)
}

async function admitByAll(
  guard: Guard<IncomingMessage>,
  limits: readonly GuardOverrides[],
  request: ClientRequest,
): Promise<Admission> {
  let passed: Passing = unlimited
  for (const limit of limits) {
    const admission = asAdmission(await guard.admit(request, request.message, limit))
    if (admission.kind === 'GONE') return admission
    if (admission.kind === 'ANSWER') return { kind: 'ANSWER', answer: withPolicies(passed.headers, admission.answer) }
    const headers = joined(passed.headers, admission.headers)
    passed = { kind: 'PASS', headers, isHeld: admission.isHeld || passed.isHeld }
  }
  return passed
}

/** One that refuses speaks, and the policies of those who were asked before it are listed too. */
function withPolicies(before: Headers, answer: Answer): Answer {
  const policies = answer.headers['RateLimit-Policy']
  const earlier = before['RateLimit-Policy']
  if (policies === undefined || earlier === undefined) return answer
  return { ...answer, headers: { ...answer.headers, 'RateLimit-Policy': `${earlier}, ${policies}` } }
}

function asAdmission(outcome: Outcome): Admission {
  if (outcome.kind === 'GONE') return outcome
  if (outcome.kind === 'REFUSE') return { kind: 'ANSWER', answer: outcome }
  return { kind: 'PASS', headers: outcome.headers, isHeld: (outcome.decision?.delayMs ?? 0) > 0 }
}

type Headers = Readonly<Record<string, string>>

/** All policies are listed; of what is left, the limit with less left speaks. */
function joined(before: Headers, after: Headers): Headers {
  const together = leftIn(after) < leftIn(before) ? { ...before, ...after } : { ...after, ...before }
  const policies = [before, after].flatMap((headers) => headers['RateLimit-Policy'] ?? [])
  return policies.length === 0 ? together : { ...together, 'RateLimit-Policy': policies.join(', ') }
}

const leftIn = (headers: Headers): number =>
  Number(/;r=(\d+)/.exec(headers.RateLimit ?? '')?.[1] ?? headers['X-RateLimit-Remaining'] ?? Number.POSITIVE_INFINITY)
