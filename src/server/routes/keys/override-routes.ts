import type { OverrideStore } from '../../../core/contracts/override-store.js'
import { FluxGateError } from '../../../core/errors.js'
import { overrideKeyKind } from '../../../rules/schema/overrides/override-schema.js'
import { described } from '../../../validation/kind.js'
import { object } from '../../../validation/structures.js'
import type { ApiParts } from '../../parts.js'
import { ApiProblem, invalidRequest } from '../../request/api-problem.js'
import { type Call, json, type Route, route } from '../../request/route.js'
import { defaultLimit, keyParameters } from '../../schemas/common-schemas.js'
import {
  newOverrideSchema,
  overrideBodySchema,
  overridePageSchema,
  overrideSchema,
} from '../../schemas/override-schemas.js'
import { audit } from '../../server-log.js'
import { activeRule } from '../active-rule.js'
import { noContent, notFound, withName } from '../edit-request.js'

const group = 'Overrides'
const access = 'ADMIN'
const path = '/api/rule-sets/:id/rules/:ruleId/overrides'
const one = `${path}/:key*`
const created = {
  description: 'The override was created.',
  schema: overrideSchema,
  headers: { Location: 'Path of the override.' },
}

/** Overrides of a rule. A change applies to the next decision. */
export function overrideRoutes(parts: ApiParts): Route[] {
  return [
    route({
      method: 'GET',
      path,
      name: 'listOverrides',
      summary: 'List the overrides of a rule. Each page is sorted by key.',
      group,
      access,
      query: object(
        {},
        {
          key: described(
            overrideKeyKind,
            'List only the override for this key. Without an override, the list is empty.',
          ),
          ...keyParameters,
        },
      ),
      responses: { 200: { description: 'A page of overrides.', schema: overridePageSchema } },
      async handle({ params, query: { prefix, key, limit = defaultLimit, cursor } }) {
        const { ruleSetId, ruleId } = activeRule(parts.gate, params)
        if (key !== undefined) {
          if (prefix !== undefined || cursor !== undefined)
            throw invalidRequest('key', 'must not be combined with prefix or cursor; omit them')
          const found = await overridesOf(parts).get(ruleSetId, ruleId, key)
          return json({ overrides: found === undefined ? [] : [found], cursor: null })
        }
        const page = await overridesOf(parts).list(ruleSetId, ruleId, { prefix, limit, cursor })
        return json({ overrides: page.items, cursor: page.cursor })
      },
    }),
    route({
      method: 'POST',
      path,
      name: 'createOverride',
      summary: 'Create an override.',
      group,
      access,
      body: newOverrideSchema,
      isCheckedByStore: true,
      responses: { 201: created, 409: { description: 'An override for this key already exists.' } },
      async handle(call) {
        const { key } = (call.body ?? {}) as { key?: unknown }
        if (typeof key === 'string' && (await find(parts, call, key)) !== undefined)
          throw new ApiProblem(
            'FLUXGATE_ALREADY_EXISTS',
            'An override for this key already exists. Use PUT to replace it.',
          )
        return put(parts, call, call.body)
      },
    }),
    route({
      method: 'GET',
      path: one,
      name: 'getOverride',
      summary: 'Get the override for a key.',
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
      summary: 'Create or replace an override.',
      group,
      access,
      body: overrideBodySchema,
      isCheckedByStore: true,
      responses: { 200: { description: 'The override was replaced.', schema: overrideSchema }, 201: created },
      handle: (call) => put(parts, call, withName(call.body, 'key', call.params.key ?? '')),
    }),
    route({
      method: 'DELETE',
      path: one,
      name: 'deleteOverride',
      summary: 'Delete an override, so that the rule applies unchanged.',
      group,
      access,
      responses: { 204: { description: 'The override was deleted.' } },
      async handle(call) {
        const { ruleSetId, ruleId } = activeRule(parts.gate, call.params)
        const { key = '' } = call.params
        if (!(await overridesOf(parts).delete(ruleSetId, ruleId, key))) throw noOverride()
        audit(parts.log, call, 'DELETE_OVERRIDE', { ruleSetId, ruleId, key: parts.showKey(key) })
        return noContent
      },
    }),
  ]
}

async function put(parts: ApiParts, call: Call, body: unknown) {
  const { ruleSetId, ruleId, rule } = activeRule(parts.gate, call.params)
  if (!rule.overrides) throw overridesDisabled(ruleId)
  const { key } = (body ?? {}) as { readonly key: string }
  // A lone surrogate has no UTF-8 encoding, so it can neither be stored nor appear in a URL.
  if (/\p{Surrogate}/u.test(key)) throw invalidRequest('key', 'contains a lone surrogate; it must be valid Unicode')
  const overrides = overridesOf(parts)
  const { created } = await overrides.put(ruleSetId, ruleId, body)
  audit(parts.log, call, 'PUT_OVERRIDE', { ruleSetId, ruleId, key: parts.showKey(key) })
  const location = `/api/rule-sets/${ruleSetId}/rules/${ruleId}/overrides/${encodeURIComponent(key)}`
  const kept = (await overrides.get(ruleSetId, ruleId, key)) ?? body
  return json(kept, created ? 201 : 200, created ? { Location: location } : {})
}

function overridesOf({ gate }: ApiParts): OverrideStore {
  if (gate.overrides !== undefined) return gate.overrides
  throw new ApiProblem('FLUXGATE_NOT_SUPPORTED', 'The bucket store of this server does not support overrides.')
}

function find(parts: ApiParts, { params }: Call, key: string) {
  const { ruleSetId, ruleId } = activeRule(parts.gate, params)
  return overridesOf(parts).get(ruleSetId, ruleId, key)
}

/** Rejected rather than stored: the override would have no effect. */
function overridesDisabled(ruleId: string): FluxGateError {
  const message = `overrides are disabled for rule "${ruleId}"; set "overrides": true on the rule first`
  return new FluxGateError('FLUXGATE_OVERRIDE_INVALID', `The override would have no effect: ${message}.`, {
    errors: [{ path: 'ruleId', message }],
  })
}

const noOverride = (): ApiProblem => notFound('No override exists for this key.')
