import { describe, expect, it } from 'vitest'
import { unmeteredDecision } from '../core/decision/unmetered-decision.js'
import type { BandDecision, Decision } from '../core/decision.js'
import { rejectionProblem } from './problem-document.js'

const band = (label: string, more: Partial<BandDecision> = {}): BandDecision => ({
  ruleId: 'login',
  label,
  key: 'user:secret',
  limit: 5,
  remaining: 0,
  resetAt: 60_000,
  retryAfterMs: 2_300,
  allowed: false,
  shadow: false,
  windowMs: 60_000,
  ...more,
})

const rejected: Decision = {
  allowed: false,
  delayMs: 0,
  reason: 'LIMITED',
  ruleSetId: 'default',
  ruleId: 'login',
  band: 'sustained',
  key: 'user:secret',
  limit: 5,
  remaining: 0,
  retryAfterMs: 2_300,
  resetAt: 60_000,
  policy: 'REJECT',
  decidedAt: 0,
  degraded: false,
  bands: [band('burst'), band('daily', { allowed: true }), band('tried', { shadow: true }), band('sustained')],
}

describe('rejectionProblem', () => {
  it('is 429 with the exhausted limits and the retry time', () => {
    expect(rejectionProblem(rejected)).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'Request cannot be satisfied as assigned quota has been exceeded',
      status: 429,
      detail: 'The limit "login.sustained" of 5 is exhausted. Try again in 3 s.',
      'violated-policies': ['login.burst', 'login.sustained'],
      retryAfterMs: 2_300,
    })
  })

  it('is 503 if the store failed', () => {
    expect(
      rejectionProblem(unmeteredDecision(false, 'STORE_FAILURE', 0, { ruleId: 'login', retryAfterMs: 1_000 })),
    ).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
      title: 'Request cannot be satisfied due to temporary server capacity constraints',
      status: 503,
      detail:
        'Rate limits cannot be checked at the moment, and this request is not allowed without a check. Try again in 1 s.',
      retryAfterMs: 1_000,
    })
  })

  it('has no retry time if the request can never succeed', () => {
    expect(rejectionProblem({ ...rejected, reason: 'IMPOSSIBLE', retryAfterMs: null })).toMatchObject({
      status: 429,
      detail: 'The cost of this request exceeds the capacity 5 of the limit "login.sustained".',
      retryAfterMs: null,
    })
  })

  it.each([
    ['MISSING_KEY', 'The rule "login" requires a client identity, which this request does not contain.'],
    ['DENY_LISTED', 'Requests of this client are blocked.'],
    ['NO_RULE', 'No rule allows this request.'],
    ['NO_RULE_SET', 'No rule allows this request.'],
  ] as const)('explains %s', (reason, detail) => {
    const problem = rejectionProblem(unmeteredDecision(false, reason, 0, { ruleId: 'login' }))
    expect(problem).toMatchObject({ status: 429, detail, 'violated-policies': [], retryAfterMs: null })
  })

  it('does not reveal the key', () => {
    expect(JSON.stringify(rejectionProblem(rejected))).not.toContain('secret')
  })
})
