import Type from 'typebox'
import { FluxGateError } from '../../core/errors.js'
import type { OverrideStore } from '../../core/override-store.js'
import type { ApiParts } from '../api-parts.js'
import { audit } from '../audit.js'
import { ApiProblem, invalidRequest } from '../request/api-problem.js'
import { type Call, json, type Route, route } from '../request/route.js'
import { defaultLimit, pageParameters } from '../schemas/common-schemas.js'
import {
  newOverrideSchema,
  overrideBodySchema,
  overridePageSchema,
  overrideSchema,
} from '../schemas/override-schemas.js'
import { noContent, nothingHere, withName } from './rule-editing.js'
import { ruleInForce } from './rule-in-force.js'

const group = 'Overrides'
const access = 'ADMIN'
const path = '/api/rule-sets/:id/rules/:ruleId/overrides'
const one = `${path}/:key*`
const created = { description: 'It was created.', schema: overrideSchema, headers: { Location: 'Its path.' } }

/** Exceptions to a rule, one identity each. What is put here holds for the next decision. */
export function overrideRoutes(parts: ApiParts): Route[] {
  return [
    route({
      method: 'GET',
      path,
      name: 'listOverrides',
      summary: 'The overrides of a rule; each page by key.',
      group,
      access,
      query: Type.Object({
        prefix: Type.Optional(Type.String({ maxLength: 1_024, description: 'What keys begin with.' })),
        ...pageParameters,
      }),
      responses: { 200: { description: 'A page of them.', schema: overridePageSchema } },
      async handle({ params, query: { prefix, limit = defaultLimit, cursor } }) {
        const { ruleSetId, ruleId } = ruleInForce(parts.gate, params)
        const page = await overridesOf(parts).list(ruleSetId, ruleId, { prefix, limit, cursor })
        return json({ overrides: page.items, cursor: page.cursor })
      },
    }),
    route({
      method: 'POST',
      path,
      name: 'createOverride',
      summary: 'Add an override.',
      group,
      access,
      body: newOverrideSchema,
      isCheckedByStore: true,
      responses: { 201: created, 409: { description: 'There is one for this key already.' } },
      async handle(call) {
        const { key } = (call.body ?? {}) as { key?: unknown }
        if (typeof key === 'string' && (await find(parts, call, key)) !== undefined)
          throw new ApiProblem('FLUXGATE_ALREADY_EXISTS', 'There is an override for this key already; PUT replaces it.')
        return put(parts, call, call.body)
      },
    }),
    route({
      method: 'GET',
      path: one,
      name: 'getOverride',
      summary: 'The override for one key.',
      group,
      access,
      responses: { 200: { description: 'The override.', schema: overrideSchema } },
      async handle(call) {
        const found = await find(parts, call, call.params.key ?? '')
        if (found === undefined) throw noOverride()
        return json(found)
      },
    }),
    route({
      method: 'PUT',
      path: one,
      name: 'putOverride',
      summary: 'Create an override, or replace it.',
      group,
      access,
      body: overrideBodySchema,
      isCheckedByStore: true,
      responses: { 200: { description: 'It was replaced.', schema: overrideSchema }, 201: created },
      handle: (call) => put(parts, call, withName(call.body, 'key', call.params.key ?? '')),
    }),
    route({
      method: 'DELETE',
      path: one,
      name: 'deleteOverride',
      summary: 'Delete an override: the rule applies as it is.',
      group,
      access,
      responses: { 204: { description: 'It is gone.' } },
      async handle(call) {
        const { ruleSetId, ruleId } = ruleInForce(parts.gate, call.params)
        const { key = '' } = call.params
        if (!(await overridesOf(parts).delete(ruleSetId, ruleId, key))) throw noOverride()
        audit(parts.log, call, 'DELETE_OVERRIDE', { ruleSetId, ruleId, key: parts.showKey(key) })
        return noContent
      },
    }),
  ]
}

async function put(parts: ApiParts, call: Call, body: unknown) {
  const { ruleSetId, ruleId, rule } = ruleInForce(parts.gate, call.params)
  if (!rule.overrides) throw notAsked(ruleId)
  const { key } = (body ?? {}) as { readonly key: string }
  // It has no bytes, and could neither be kept nor named in a URL.
  if (/\p{Surrogate}/u.test(key)) throw invalidRequest('key', 'has half of a character')
  const overrides = overridesOf(parts)
  const { created } = await overrides.put(ruleSetId, ruleId, body)
  audit(parts.log, call, 'PUT_OVERRIDE', { ruleSetId, ruleId, key: parts.showKey(key) })
  const location = `/api/rule-sets/${ruleSetId}/rules/${ruleId}/overrides/${encodeURIComponent(key)}`
  const kept = (await overrides.get(ruleSetId, ruleId, key)) ?? body
  return json(kept, created ? 201 : 200, created ? { Location: location } : {})
}

function overridesOf({ gate }: ApiParts): OverrideStore {
  if (gate.overrides !== undefined) return gate.overrides
  throw new ApiProblem('FLUXGATE_NOT_SUPPORTED', 'The store that holds the buckets of this server keeps no overrides.')
}

function find(parts: ApiParts, { params }: Call, key: string) {
  const { ruleSetId, ruleId } = ruleInForce(parts.gate, params)
  return overridesOf(parts).get(ruleSetId, ruleId, key)
}

/** What has no effect must not look as if it had. */
function notAsked(ruleId: string): FluxGateError {
  const message = `rule "${ruleId}" does not look for overrides; give it "overrides": true first`
  return new FluxGateError('FLUXGATE_OVERRIDE_INVALID', `An override would have no effect: ${message}.`, {
    errors: [{ path: 'ruleId', message }],
  })
}

const noOverride = (): ApiProblem => nothingHere('There is no override for this key.')
