import type { BanInput, BanStore } from '../../../core/contracts/ban-store.js'
import { object } from '../../../validation/structures.js'
import type { ApiParts } from '../../parts.js'
import { ApiProblem } from '../../request/api-problem.js'
import { type Call, json, type Route, route } from '../../request/route.js'
import { activeBanSchema, banBodySchema, banPageSchema, newBanSchema } from '../../schemas/ban-schemas.js'
import { defaultLimit, keyParameters } from '../../schemas/common-schemas.js'
import { audit } from '../../server-log.js'
import { activeRule } from '../active-rule.js'
import { noContent, notFound, withName } from '../edit-request.js'

const group = 'Bans'
const access = 'ADMIN'
const path = '/api/rule-sets/:id/rules/:ruleId/bans'
const one = `${path}/:key*`
const created = {
  description: 'The key was banned.',
  schema: activeBanSchema,
  headers: { Location: 'Path of the ban.' },
}

/** Bans by a rule. A change applies to the next decision, and within a second to processes that have cached a ban. */
export function banRoutes(parts: ApiParts): Route[] {
  return [
    route({
      method: 'GET',
      path,
      name: 'listBans',
      summary: 'List the bans of a rule, sorted by key. A page may be shorter than `limit`.',
      group,
      access,
      query: object({}, keyParameters),
      responses: { 200: { description: 'A page of bans.', schema: banPageSchema } },
      async handle({ params, query: { prefix, limit = defaultLimit, cursor } }) {
        const { ruleSetId, ruleId } = activeRule(parts.gate, params)
        const page = await bansOf(parts).list(ruleSetId, ruleId, { prefix, limit, cursor })
        return json({ bans: page.items, cursor: page.cursor })
      },
    }),
    route({
      method: 'POST',
      path,
      name: 'createBan',
      summary: 'Ban a key by hand.',
      group,
      access,
      body: newBanSchema,
      isCheckedByStore: true,
      responses: { 201: created, 409: { description: 'The key is already banned.' } },
      async handle(call) {
        const { key } = (call.body ?? {}) as { key?: unknown }
        if (typeof key === 'string' && key !== '' && (await find(parts, call, key)) !== undefined)
          throw new ApiProblem('FLUXGATE_ALREADY_EXISTS', 'The key is already banned. Use PUT to replace the ban.')
        return set(parts, call, call.body)
      },
    }),
    route({
      method: 'GET',
      path: one,
      name: 'getBan',
      summary: 'Get the ban of a key.',
      group,
      access,
      responses: { 200: { description: 'The ban.', schema: activeBanSchema } },
      async handle(call) {
        const found = await find(parts, call, call.params.key ?? '')
        if (found === undefined) throw noBan()
        return json(found)
      },
    }),
    route({
      method: 'PUT',
      path: one,
      name: 'putBan',
      summary: 'Ban a key by hand, or replace its ban.',
      group,
      access,
      body: banBodySchema,
      isCheckedByStore: true,
      responses: { 200: { description: 'The ban was replaced.', schema: activeBanSchema }, 201: created },
      handle: (call) => set(parts, call, withName(call.body, 'key', call.params.key ?? '')),
    }),
    route({
      method: 'DELETE',
      path: one,
      name: 'liftBan',
      summary: 'Lift the ban of a key, and clear its escalation.',
      group,
      access,
      responses: { 204: { description: 'The ban was lifted.' } },
      async handle(call) {
        const { ruleSetId, ruleId } = activeRule(parts.gate, call.params)
        const { key = '' } = call.params
        if (!(await bansOf(parts).lift(ruleSetId, ruleId, key))) throw noBan()
        audit(parts.log, call, 'LIFT_BAN', { ruleSetId, ruleId, key: parts.showKey(key) })
        return noContent
      },
    }),
  ]
}

async function set(parts: ApiParts, call: Call, body: unknown) {
  const { ruleSetId, ruleId } = activeRule(parts.gate, call.params)
  const { key, ...input } = (body ?? {}) as BanInput & { readonly key: string }
  const { ban, created } = await bansOf(parts).set(ruleSetId, ruleId, key, input)
  audit(parts.log, call, 'SET_BAN', { ruleSetId, ruleId, key: parts.showKey(ban.key), until: ban.until })
  const location = `/api/rule-sets/${ruleSetId}/rules/${ruleId}/bans/${encodeURIComponent(ban.key)}`
  return json(ban, created ? 201 : 200, created ? { Location: location } : {})
}

function bansOf({ gate }: ApiParts): BanStore {
  if (gate.bans !== undefined) return gate.bans
  throw new ApiProblem('FLUXGATE_NOT_SUPPORTED', 'The bucket store of this server does not support bans.')
}

function find(parts: ApiParts, { params }: Call, key: string) {
  const { ruleSetId, ruleId } = activeRule(parts.gate, params)
  return bansOf(parts).get(ruleSetId, ruleId, key)
}

const noBan = (): ApiProblem => notFound('The key is not banned.')
