import type { IncomingHttpHeaders } from 'node:http'
import type { Decision } from '../../core/decision.js'
import { FluxGateError } from '../../core/errors.js'
import type { CheckOptions } from '../../core/handler.js'
import type { RequestContext } from '../../core/request-context.js'
import { quoted } from '../../validation/issues.js'
import { nameHint } from '../../validation/nearest.js'
import { decisionsBytes, decisionText } from '../decision-text.js'
import { json, type Reply, type Route, route } from '../request/route.js'
import {
  batchSchema,
  type CheckBody,
  checkMembers,
  checkSchema,
  holdSchema,
  type RefundBody,
  refundedSchema,
  refundSchema,
  releasedSchema,
  renewedSchema,
} from '../schemas/check-schema.js'
import { decisionSchema, decisionsSchema } from '../schemas/decision-schema.js'
import type { ServerGate } from '../server-gate.js'

const group = 'Decisions'

/** Checks and refunds. With in-memory buckets, checks are answered synchronously. */
export function checkRoutes(gate: ServerGate): Route[] {
  return [
    route({
      method: 'POST',
      path: '/api/ratelimit/check',
      name: 'check',
      summary: 'Decide one request, and charge for it if it is allowed.',
      group,
      access: 'CHECK',
      body: checkSchema,
      responses: {
        200: { description: 'The decision, allowed or rejected.', schema: decisionSchema, headers: warningHeader },
      },
      handle({ body, headers }) {
        const decision = decide(gate, body, traceHeaders(headers))
        const warning = unknownMembers(body)
        if (warning !== undefined) return warned(gate, warning, decision, ok)
        return decision instanceof Promise ? decision.then(ok) : ok(decision)
      },
    }),
    route({
      method: 'POST',
      path: '/api/ratelimit/check/batch',
      name: 'checkBatch',
      summary: 'Decide many requests in one call, each independently.',
      group,
      access: 'CHECK',
      body: batchSchema,
      responses: { 200: { description: 'The decisions.', schema: decisionsSchema, headers: warningHeader } },
      handle({ body }) {
        // First, because an invalid check fails the batch, which must then charge nothing.
        for (const [index, check] of body.checks.entries()) if (check.costs) validateCosts(gate, check, index)
        // Issued in one turn of the event loop, so that a store can send them in one call.
        const decisions = body.checks.map((check) => decide(gate, check))
        const warning = unknownMembers(body, ['checks']) ?? firstOf(body.checks, unknownMembers)
        if (warning !== undefined) return warned(gate, warning, Promise.all(decisions), allOf)
        return decisions.some((decision) => decision instanceof Promise)
          ? Promise.all(decisions).then(allOf)
          : allOf(decisions as readonly Decision[])
      },
    }),
    route({
      method: 'POST',
      path: '/api/ratelimit/refund',
      name: 'refund',
      summary: 'Return the permits that a check has charged.',
      group,
      access: 'CHECK',
      body: refundSchema,
      responses: { 200: { description: 'The permits were returned.', schema: refundedSchema, headers: warningHeader } },
      async handle({ body }) {
        const permits = body.permits ?? 1
        await gate.refund(contextOf(body), chargeOf(body))
        const warning = unknownMembers(body)
        return warning === undefined ? json({ permits }) : warned(gate, warning, { permits }, json)
      },
    }),
    ...holdRoutes(gate),
  ]
}

/** Releases and renewals of the holds that checks have taken. */
function holdRoutes(gate: ServerGate): Route[] {
  return [
    route({
      method: 'POST',
      path: '/api/ratelimit/release',
      name: 'releaseHold',
      summary: 'Free the slots that an allowed check occupies under CONCURRENCY rules.',
      group,
      access: 'CHECK',
      body: holdSchema,
      responses: { 200: { description: 'Whether the hold existed.', schema: releasedSchema } },
      handle: async ({ body }) => json({ released: await gate.release(body.holdId) }),
    }),
    route({
      method: 'POST',
      path: '/api/ratelimit/renew',
      name: 'renewHold',
      summary: 'Extend a hold by the `maxHold` of its rules.',
      group,
      access: 'CHECK',
      body: holdSchema,
      responses: { 200: { description: 'Whether the hold exists.', schema: renewedSchema } },
      handle: async ({ body }) => json({ renewed: await gate.renew(body.holdId) }),
    }),
  ]
}

const jsonHeaders = { 'Content-Type': 'application/json' }

const ok = (decision: Decision): Reply => ({ status: 200, headers: jsonHeaders, text: decisionText(decision) })

const allOf = (decisions: readonly Decision[]): Reply => ({
  status: 200,
  headers: jsonHeaders,
  text: decisionsBytes(decisions),
})

export const warningHeader = { 'FluxGate-Warning': 'Names an unknown member of the request, which has no effect.' }

/** A message about the first unknown member, which is probably misspelt. Newer clients may send it to an older server, so it is no error. */
export function unknownMembers(body: object, names: readonly string[] = checkMembers): string | undefined {
  for (const name in body)
    if (!names.includes(name)) return `The check has the unknown member ${quoted(name)}; ${nameHint(name, names)}`
  return undefined
}

function firstOf<T extends object>(items: readonly T[], find: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const found = find(item)
    if (found !== undefined) return found
  }
  return undefined
}

/** Logs and counts the warning, and sends it with the reply, because a client does not see the log of the server. */
export async function warned<T>(
  { warnings }: ServerGate,
  warning: string,
  result: T | Promise<T>,
  replyOf: (result: T) => Reply,
): Promise<Reply> {
  // One warning for all members, because clients choose them.
  warnings.warn('FLUXGATE_ARGUMENT_INVALID', warning, 'unknown member')
  const reply = replyOf(await result)
  return { ...reply, headers: { ...reply.headers, 'FluxGate-Warning': asciiText(warning) } }
}

const asciiText = (text: string): string =>
  text.replaceAll(/[^ -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)

function decide(gate: ServerGate, body: CheckBody, trace?: RequestContext['headers']): Decision | Promise<Decision> {
  const context = contextOf(body, trace)
  const options: CheckOptions = {
    ruleSetId: body.ruleSetId ?? undefined,
    permits: body.permits ?? undefined,
    costs: body.costs ?? undefined,
    peek: body.peek ?? undefined,
    // The caller's timeout is short, so a wait for a slot is left to the caller.
    waitForSlot: false,
  }
  return gate.decide(context, options)
}

function validateCosts(gate: ServerGate, check: CheckBody, index: number): void {
  try {
    gate.validateCosts(chargeOf(check))
  } catch (error) {
    if (!(error instanceof FluxGateError)) throw error
    throw new FluxGateError(error.code, `checks[${index}].${error.message}`)
  }
}

/** The trace headers of the call itself, for statistics; undefined without any. */
export function traceHeaders({ traceparent, 'x-trace-id': traceId }: IncomingHttpHeaders): RequestContext['headers'] {
  return traceparent === undefined && traceId === undefined ? undefined : { traceparent, 'x-trace-id': traceId }
}

/** The rule set of a request and what it charges. A null member counts as omitted. */
export const chargeOf = ({ ruleSetId, permits, costs }: RefundBody) => ({
  ruleSetId: ruleSetId ?? undefined,
  permits: permits ?? undefined,
  costs: costs ?? undefined,
})

/** Lists the members explicitly, so that no unknown member of the body enters the context. */
export function contextOf(body: RefundBody, trace?: RequestContext['headers']): RequestContext {
  return {
    key: body.key ?? undefined,
    clientIp: body.clientIp ?? undefined,
    userId: body.userId ?? undefined,
    apiKey: body.apiKey ?? undefined,
    method: body.method?.toUpperCase(),
    path: body.path ?? body.endpoint ?? undefined,
    headers: (trace && body.headers
      ? { ...trace, ...body.headers }
      : (body.headers ?? trace)) as RequestContext['headers'],
    attributes: body.attributes ?? undefined,
  }
}
