import type { RuleSetDocument, RuleStore } from '../../core/contracts/rule-store.js'
import { inSlices } from '../../core/scheduling/steps.js'
import { described } from '../../validation/kind.js'
import { boundedText } from '../../validation/kinds.js'
import { object } from '../../validation/structures.js'
import type { ApiParts } from '../parts.js'
import type { ApiProblem } from '../request/api-problem.js'
import { etagOf, expectedVersion, isNotModified } from '../request/etag.js'
import { longJson, type Reply, type Route, route } from '../request/route.js'
import { defaultLimit, pageParameters } from '../schemas/common-schemas.js'
import { historySchema, ruleSetBodySchema, ruleSetPageSchema, ruleSetSchema } from '../schemas/rule-schemas.js'
import { audit } from '../server-log.js'
import { applyStoredRules, requireRuleStore } from '../stored-rules.js'
import { canonicalSet } from './canonical-rule.js'
import {
  conditionalEditHeaders,
  conditionalReadHeaders,
  editExisting,
  etagHeader,
  noContent,
  notFound,
  quotedId,
  withName,
} from './edit-request.js'

const group = 'Rule sets'
const access = 'ADMIN'
const path = '/api/rule-sets/:id'

export function ruleSetRoutes(parts: ApiParts): Route[] {
  const currentVersion = (id: string) => async () => (await requireRuleStore(parts).getRuleSet(id))?.version ?? 0
  return [
    route({
      method: 'GET',
      path: '/api/rule-sets',
      name: 'listRuleSets',
      summary: 'List all rule sets, by ID.',
      group,
      access,
      query: object(
        {},
        { q: described(boundedText(0, 256), 'Text to search for in ID and description.'), ...pageParameters },
      ),
      responses: { 200: { description: 'A page of rule sets.', schema: ruleSetPageSchema } },
      async handle({ query: { q = '', ...page } }) {
        const search = q.toLowerCase()
        const { items: ruleSets, cursor } = await findRuleSets(
          requireRuleStore(parts),
          page,
          ({ id, description = '', candidateOf }) =>
            candidateOf === undefined && [id, description].some((text) => text.toLowerCase().includes(search)),
        )
        return longJson({ ruleSets, cursor })
      },
    }),
    route({
      method: 'GET',
      path,
      name: 'getRuleSet',
      summary: 'Get a rule set with its rules.',
      group,
      access,
      headers: conditionalReadHeaders,
      responses: {
        200: { description: 'The rule set.', schema: ruleSetSchema, headers: etagHeader },
        304: { description: 'The version of `If-None-Match` is current.' },
      },
      async handle({ params: { id = '' }, headers }) {
        const found = await requireRuleStore(parts).getRuleSet(id)
        if (found === undefined) throw unknownSet(id)
        return isNotModified(headers, found.version)
          ? { status: 304, headers: { ETag: etagOf(found.version) } }
          : ruleSetReply(found)
      },
    }),
    route({
      method: 'PUT',
      path,
      name: 'putRuleSet',
      summary: 'Create or replace a rule set with all its rules. It is in effect when the response arrives.',
      group,
      access,
      body: ruleSetBodySchema,
      isCheckedByStore: true,
      headers: conditionalEditHeaders,
      responses: {
        200: { description: 'The rule set was replaced.', schema: ruleSetSchema, headers: etagHeader },
        201: {
          description: 'The rule set was created.',
          schema: ruleSetSchema,
          headers: { ...etagHeader, Location: 'Path of the rule set.' },
        },
      },
      async handle(call) {
        const { id = '' } = call.params
        const ifVersion = await expectedVersion(call.headers, currentVersion(id))
        const edit = { by: call.by, ifVersion }
        const { document, created } = await requireRuleStore(parts).putRuleSet(withName(call.body, 'id', id), edit)
        audit(parts.log, call, 'PUT_SET', { ruleSetId: id, version: document.version })
        await applyStoredRules(parts, 'The rule set was saved, but is not in effect.')
        return created ? ruleSetReply(document, 201, { Location: pathOfSet(id) }) : ruleSetReply(document)
      },
    }),
    route({
      method: 'DELETE',
      path,
      name: 'deleteRuleSet',
      summary: 'Delete a rule set with its rules.',
      group,
      access,
      headers: conditionalEditHeaders,
      responses: { 204: { description: 'The rule set was deleted.' } },
      async handle(call) {
        const { id = '' } = call.params
        const existed = await editExisting(
          async () => {
            const ifVersion = await expectedVersion(call.headers, currentVersion(id))
            return requireRuleStore(parts).deleteRuleSet(id, { by: call.by, ifVersion })
          },
          async () => (await currentVersion(id)()) > 0,
          () => unknownSet(id),
        )
        if (!existed) throw unknownSet(id)
        audit(parts.log, call, 'DELETE_SET', { ruleSetId: id })
        await applyStoredRules(parts, 'The rule set was deleted, but is still in effect.')
        return noContent
      },
    }),
    route({
      method: 'GET',
      path: `${path}/history`,
      name: 'ruleSetHistory',
      summary: 'Get the edit history of a rule set, newest first. Deleted rule sets keep their history.',
      group,
      access,
      query: object({}, pageParameters),
      responses: { 200: { description: 'A page of changes.', schema: historySchema } },
      async handle({ params: { id = '' }, query: { limit = defaultLimit, cursor } }) {
        const store = requireRuleStore(parts)
        const page = await store.history(id, { limit, cursor })
        if (page.items.length === 0 && !(await isKnown(store, id))) throw unknownSet(id)
        return longJson({ changes: page.items, cursor: page.cursor })
      },
    }),
  ]
}

/** True if the rule set exists or has a history, which deleted rule sets keep. */
const isKnown = async (store: RuleStore, id: string): Promise<boolean> =>
  (await store.getRuleSet(id)) !== undefined || (await store.history(id, { limit: 1 })).items.length > 0

export const pathOfSet = (id: string): string => `/api/rule-sets/${encodeURIComponent(id)}`

export const unknownSet = (id: string): ApiProblem => notFound(`Rule set ${quotedId(id)} does not exist.`)

/** A rule set with its ETag. */
export const ruleSetReply = async (
  set: RuleSetDocument,
  status = 200,
  headers: Readonly<Record<string, string>> = {},
): Promise<Reply> => longJson(await inSlices(canonicalSet(set)), status, { ETag: etagOf(set.version), ...headers })

/** Filters pages of the store. A page may be short, but is never empty while there are further matches. */
export async function findRuleSets(
  rules: RuleStore,
  { limit = defaultLimit, cursor }: { limit?: number; cursor?: string },
  matches: (set: RuleSetDocument) => boolean,
) {
  for (let from = cursor; ; ) {
    const page = await rules.listRuleSets({ limit, cursor: from })
    const items: RuleSetDocument[] = []
    for (const set of page.items) if (matches(set)) items.push(await inSlices(canonicalSet(set)))
    if (items.length > 0 || page.cursor === null) return { items, cursor: page.cursor }
    from = page.cursor
  }
}
