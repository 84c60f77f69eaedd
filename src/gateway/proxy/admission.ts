import type { IncomingMessage } from 'node:http'
import type { Answer } from '../../http/connections/raw-answer.js'
import type { Guard, Outcome } from '../../http/guard.js'
import type { GuardOverrides } from '../../http/guard-options.js'
import { earlierHeaders, mergeHeaders } from '../../http/rate-limit-headers.js'
import type { ClientRequest } from './client-request.js'

/** PASS: forward the request, and add these headers to its response. ANSWER: respond now. GONE: the client disconnected. */
export type Admission = Passing | { readonly kind: 'ANSWER'; readonly answer: Answer } | { readonly kind: 'GONE' }

interface Passing {
  readonly kind: 'PASS'
  readonly headers: Readonly<Record<string, string>>
  readonly isHeld: boolean
}

const unlimited: Passing = Object.freeze({ kind: 'PASS', headers: Object.freeze({}), isHeld: false })

/** Checks all limits of a route, in order. Synchronous if there is one limit and it needs no I/O. */
export function admit(
  guard: Guard<IncomingMessage>,
  limits: readonly GuardOverrides[],
  request: ClientRequest,
): Admission | Promise<Admission> {
  if (limits.length === 0) return unlimited
  if (limits.length > 1) return admitByAll(guard, limits, request)
  const outcome = guard.admit(request, request.message, limits[0])
  return outcome instanceof Promise ? outcome.then(toAdmission) : toAdmission(outcome)
}

async function admitByAll(
  guard: Guard<IncomingMessage>,
  limits: readonly GuardOverrides[],
  request: ClientRequest,
): Promise<Admission> {
  let passed: Passing = unlimited
  for (const limit of limits) {
    const admission = toAdmission(await guard.admit(request, request.message, limit))
    if (admission.kind === 'GONE') return admission
    const earlier = earlierHeaders(passed.headers)
    if (admission.kind === 'ANSWER') {
      const { answer } = admission
      return { kind: 'ANSWER', answer: { ...answer, headers: mergeHeaders(answer.headers, earlier, true) } }
    }
    const headers = { ...passed.headers, ...mergeHeaders(admission.headers, earlier, false) }
    passed = { kind: 'PASS', headers, isHeld: admission.isHeld || passed.isHeld }
  }
  return passed
}

function toAdmission(outcome: Outcome): Admission {
  if (outcome.kind === 'ABORTED') return { kind: 'GONE' }
  if (outcome.kind === 'REJECTED') return { kind: 'ANSWER', answer: outcome }
  return { kind: 'PASS', headers: outcome.headers, isHeld: (outcome.decision?.delayMs ?? 0) > 0 }
}
