import type { RuleDocument } from '../../core/contracts/rule-store.js'
import { described } from '../../validation/kind.js'
import { boolean, boundedText } from '../../validation/kinds.js'
import { object } from '../../validation/structures.js'
import type { ApiParts } from '../parts.js'
import { ApiProblem } from '../request/api-problem.js'
import { etagOf, expectedVersion, isNotModified } from '../request/etag.js'
import { mergePatch } from '../request/merge-patch.js'
import { type Call, json, type Reply, type Route, route } from '../request/route.js'
import { defaultLimit, pageParameters } from '../schemas/common-schemas.js'
import { ruleBodySchema, rulePageSchema, rulePatchSchema, ruleSchema } from '../schemas/rule-schemas.js'
import { audit } from '../server-log.js'
import { applyStoredRules, requireRuleStore } from '../stored-rules.js'
import { canonicalRule } from './canonical-rule.js'
import {
  conditionalEditHeaders,
  conditionalReadHeaders,
  editExisting,
  etagHeader,
  isConflict,
  noContent,
  notFound,
  quotedId,
  withName,
} from './edit-request.js'
import { pathOfSet } from './rule-set-routes.js'

const group = 'Rules'
const access = 'ADMIN'
const path = '/api/rule-sets/:id/rules'
const one = `${path}/:ruleId`
const located = { ...etagHeader, Location: 'Path of the rule.' }

export function ruleRoutes(parts: ApiParts): Route[] {
  return [
    route({
      method: 'GET',
      path,
      name: 'listRules',
      summary: 'List the rules of a rule set, by priority.',
      group,
      access,
      query: object(
        {},
        {
          q: described(boundedText(0, 256), 'Text to search for in ID, name, description and path.'),
          enabled: boolean,
          ...pageParameters,
        },
      ),
      responses: { 200: { description: 'A page of rules.', schema: rulePageSchema } },
      async handle({ params: { id = '' }, query: { q, enabled, limit = defaultLimit, cursor } }) {
        const page = await requireRuleStore(parts).listRules(id, { q, enabled, limit, cursor })
        return json({ rules: page.items.map(canonicalRule), cursor: page.cursor })
      },
    }),
    route({
      method: 'POST',
      path,
      name: 'createRule',
      summary: 'Create a rule. It is in effect when the response arrives.',
      group,
      access,
      body: ruleSchema,
      isCheckedByStore: true,
      responses: {
        201: { description: 'The rule was created.', schema: ruleSchema, headers: located },
        409: { description: 'A rule with this ID already exists.' },
      },
      async handle(call) {
        const { id: ruleId } = (call.body ?? {}) as { id?: unknown }
        try {
          return await put(parts, call, call.body, 0)
        } catch (error) {
          const exists =
            isConflict(error) && (await requireRuleStore(parts).getRule(idOf(call), String(ruleId))) !== undefined
          if (!exists) throw error
          throw new ApiProblem('FLUXGATE_ALREADY_EXISTS', `Rule "${ruleId}" already exists. Use PUT to replace it.`)
        }
      },
    }),
    route({
      method: 'GET',
      path: one,
      name: 'getRule',
      summary: 'Get a rule.',
      group,
      access,
      headers: conditionalReadHeaders,
      responses: {
        200: { description: 'The rule.', schema: ruleSchema, headers: etagHeader },
        304: { description: 'The version of `If-None-Match` is current.' },
      },
      async handle(call) {
        const rule = await existing(parts, call)
        const etag = { ETag: etagOf(rule.version) }
        return isNotModified(call.headers, rule.version)
          ? { status: 304, headers: etag }
          : json(canonicalRule(rule), 200, etag)
      },
    }),
    route({
      method: 'PUT',
      path: one,
      name: 'putRule',
      summary: 'Create or replace a rule. It is in effect when the response arrives.',
      group,
      access,
      body: ruleBodySchema,
      isCheckedByStore: true,
      headers: conditionalEditHeaders,
      responses: {
        200: { description: 'The rule was replaced.', schema: ruleSchema, headers: etagHeader },
        201: { description: 'The rule was created.', schema: ruleSchema, headers: located },
      },
      async handle(call) {
        const { ruleId = '' } = call.params
        return put(
          parts,
          call,
          withName(call.body, 'id', ruleId),
          await expectedVersion(call.headers, currentVersion(parts, call)),
        )
      },
    }),
    route({
      method: 'PATCH',
      path: one,
      name: 'patchRule',
      summary: 'Change some members of a rule with a JSON merge patch.',
      group,
      access,
      body: rulePatchSchema,
      isCheckedByStore: true,
      headers: conditionalEditHeaders,
      responses: { 200: { description: 'The changed rule.', schema: ruleSchema, headers: etagHeader } },
      handle: (call) => changingRule(parts, call, () => patch(parts, call)),
    }),
    route({
      method: 'DELETE',
      path: one,
      name: 'deleteRule',
      summary: 'Delete a rule and its buckets.',
      group,
      access,
      headers: conditionalEditHeaders,
      responses: { 204: { description: 'The rule was deleted.' } },
      async handle(call) {
        const { id: ruleSetId = '', ruleId = '' } = call.params
        const existed = await changingRule(parts, call, async () => {
          const ifVersion = await expectedVersion(call.headers, currentVersion(parts, call))
          return requireRuleStore(parts).deleteRule(ruleSetId, ruleId, { by: call.by, ifVersion })
        })
        if (!existed) throw unknownRule(call)
        audit(parts.log, call, 'DELETE_RULE', { ruleSetId, ruleId })
        await applyStoredRules(parts, 'The rule was deleted, but is still in effect.')
        return noContent
      },
    }),
  ]
}

const idOf = ({ params }: Call): string => params.id ?? ''

async function put(parts: ApiParts, call: Call, body: unknown, ifVersion: number | undefined): Promise<Reply> {
  const ruleSetId = idOf(call)
  const { document, created } = await requireRuleStore(parts).putRule(ruleSetId, body, { by: call.by, ifVersion })
  const { id: ruleId, version } = document
  audit(parts.log, call, 'PUT_RULE', { ruleSetId, ruleId, version })
  await applyStoredRules(parts, 'The rule was saved, but is not in effect.')
  const location = created && { Location: `${pathOfSet(ruleSetId)}/rules/${encodeURIComponent(ruleId)}` }
  return json(canonicalRule(document), created ? 201 : 200, { ETag: etagOf(version), ...location })
}

const maxAttempts = 20

/** Without `If-Match`, a patch applies to any version, so it is retried after a concurrent change. */
async function patch(parts: ApiParts, call: Call): Promise<Reply> {
  const expected = await expectedVersion(call.headers, currentVersion(parts, call))
  for (let attempt = 1; ; attempt++) {
    const before = await existing(parts, call)
    const ifVersion = expected ?? (before.version as number)
    try {
      return await put(parts, call, mergePatch(before, withName(call.body, 'id', before.id)), ifVersion)
    } catch (error) {
      if (expected !== undefined || !isConflict(error) || attempt === maxAttempts) throw error
    }
  }
}

const changingRule = <T>(parts: ApiParts, call: Call, change: () => Promise<T>): Promise<T> =>
  editExisting(
    change,
    async () => (await currentVersion(parts, call)()) > 0,
    () => unknownRule(call),
  )

async function existing(parts: ApiParts, call: Call): Promise<RuleDocument> {
  const { id = '', ruleId = '' } = call.params
  const rule = await requireRuleStore(parts).getRule(id, ruleId)
  if (rule === undefined) throw unknownRule(call)
  return rule
}

const currentVersion =
  (parts: ApiParts, { params: { id = '', ruleId = '' } }: Call) =>
  async () =>
    ((await requireRuleStore(parts).getRule(id, ruleId))?.version as number | undefined) ?? 0

const unknownRule = ({ params: { id = '', ruleId = '' } }: Call): ApiProblem =>
  notFound(`Rule ${quotedId(ruleId)} does not exist in rule set ${quotedId(id)}.`)
