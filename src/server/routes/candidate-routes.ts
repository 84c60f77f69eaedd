import { candidateIdOf } from '../../core/rule.js'
import {
  dropCandidate,
  getCandidate,
  noCandidate,
  promoteCandidate,
  putCandidate,
} from '../../rules/store/candidates.js'
import { isObject } from '../../validation/fields.js'
import { object } from '../../validation/structures.js'
import type { ApiParts } from '../parts.js'
import { invalidRequest } from '../request/api-problem.js'
import { expectedVersion } from '../request/etag.js'
import { json, longJson, type Route, route } from '../request/route.js'
import { candidatePageSchema, candidateReportSchema } from '../schemas/candidate-schemas.js'
import { pageParameters } from '../schemas/common-schemas.js'
import { ruleSetBodySchema, ruleSetSchema } from '../schemas/rule-schemas.js'
import { audit } from '../server-log.js'
import { applyStoredRules, requireRuleStore } from '../stored-rules.js'
import { etagHeader, noContent } from './edit-request.js'
import { findRuleSets, ruleSetReply, unknownSet } from './rule-set-routes.js'

const group = 'Candidates'
const access = 'ADMIN'
const path = '/api/rule-sets/:id/candidate'

/** Candidates: other versions of rule sets, evaluated alongside the current rules. */
export function candidateRoutes(parts: ApiParts): Route[] {
  return [
    route({
      method: 'GET',
      path: '/api/candidates',
      name: 'listCandidates',
      summary: 'List the candidates of all rule sets, by ID of the rule set.',
      group,
      access,
      query: object({}, pageParameters),
      responses: { 200: { description: 'A page of candidates.', schema: candidatePageSchema } },
      async handle({ query }) {
        const { items: candidates, cursor } = await findRuleSets(
          requireRuleStore(parts),
          query,
          ({ candidateOf }) => candidateOf !== undefined,
        )
        return longJson({ candidates, cursor })
      },
    }),
    route({
      method: 'GET',
      path,
      name: 'getCandidate',
      summary: 'Get the candidate of a rule set.',
      group,
      access,
      responses: { 200: { description: 'The candidate.', schema: ruleSetSchema, headers: etagHeader } },
      async handle({ params: { id = '' } }) {
        const found = await getCandidate(requireRuleStore(parts), id)
        if (found === undefined) throw noCandidate(id)
        return ruleSetReply(found)
      },
    }),
    route({
      method: 'PUT',
      path,
      name: 'putCandidate',
      summary:
        'Create or replace the candidate of a rule set. It is evaluated alongside the current rules, without effect.',
      group,
      access,
      body: ruleSetBodySchema,
      isCheckedByStore: true,
      responses: {
        200: { description: 'The candidate was replaced.', schema: ruleSetSchema, headers: etagHeader },
        201: { description: 'The candidate was created.', schema: ruleSetSchema, headers: etagHeader },
      },
      async handle(call) {
        const { id = '' } = call.params
        const { document, created } = await putCandidate(requireRuleStore(parts), id, candidateBody(call.body, id), {
          by: call.by,
        })
        audit(parts.log, call, 'PUT_CANDIDATE', { ruleSetId: id, version: document.version })
        await applyStoredRules(parts, 'The candidate was saved, but is not in effect.')
        return ruleSetReply(document, created ? 201 : 200)
      },
    }),
    route({
      method: 'GET',
      path: `${path}/report`,
      name: 'candidateReport',
      summary:
        'Compare the candidate with the current rules: requests rejected by both, only by these rules, or only by the candidate.',
      group,
      access,
      responses: { 200: { description: 'The comparison.', schema: candidateReportSchema } },
      async handle({ params: { id = '' } }) {
        const report = await parts.candidateReport(id)
        if (report === undefined) throw noCandidate(id)
        return json(report)
      },
    }),
    route({
      method: 'POST',
      path: `${path}/promote`,
      name: 'promoteCandidate',
      summary:
        'Replace the rule set with its candidate, and remove the candidate. The history keeps the replaced version.',
      group,
      access,
      headers: { 'If-Match': 'ETag of the current rule set. Responds with 412 if it has changed.' },
      responses: { 200: { description: 'The rule set.', schema: ruleSetSchema, headers: etagHeader } },
      async handle(call) {
        const { id = '' } = call.params
        const store = requireRuleStore(parts)
        const ifVersion = await expectedVersion(call.headers, async () => (await store.getRuleSet(id))?.version ?? 0)
        const document = await promoteCandidate(store, id, { by: call.by, ifVersion })
        audit(parts.log, call, 'PROMOTE_CANDIDATE', { ruleSetId: id, version: document.version })
        await applyStoredRules(parts, 'The candidate was promoted, but is not in effect.')
        return ruleSetReply(document)
      },
    }),
    route({
      method: 'DELETE',
      path,
      name: 'dropCandidate',
      summary: 'Remove the candidate of a rule set.',
      group,
      access,
      responses: { 204: { description: 'The candidate was removed.' } },
      async handle(call) {
        const { id = '' } = call.params
        const store = requireRuleStore(parts)
        if (!(await dropCandidate(store, id, { by: call.by })))
          throw (await store.getRuleSet(id)) === undefined ? unknownSet(id) : noCandidate(id)
        audit(parts.log, call, 'DROP_CANDIDATE', { ruleSetId: id })
        await applyStoredRules(parts, 'The candidate was removed, but is still in effect.')
        return noContent
      },
    }),
  ]
}

/** Accepts the document of the rule set itself, as a client reads and changes it. */
function candidateBody(body: unknown, ruleSetId: string): object {
  if (!isObject(body)) throw invalidRequest('body', 'must be a JSON object')
  const { id, candidateOf, ...document } = body
  if (id !== undefined && id !== ruleSetId && id !== candidateIdOf(ruleSetId))
    throw invalidRequest('id', 'must be the id in the URL, or be omitted')
  if (candidateOf !== undefined && candidateOf !== ruleSetId)
    throw invalidRequest('candidateOf', 'must be the id in the URL, or be omitted')
  return document
}
