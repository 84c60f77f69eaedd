import { FluxGateError, type ValidationIssue } from '../../core/errors.js'
import { inSlices } from '../../core/scheduling/steps.js'
import { checkSteps } from '../../rules/schema/parse-rules.js'
import { validateRule } from '../../rules/store/rule-document.js'
import type { ApiParts } from '../parts.js'
import { json, type Route, route } from '../request/route.js'
import { anyDocumentSchema, reloadedSchema, reloadSchema, validationSchema } from '../schemas/rule-schemas.js'
import { audit } from '../server-log.js'
import { applyStoredRules } from '../stored-rules.js'
import { notFound, quotedId } from './edit-request.js'

const group = 'Rules'
const access = 'ADMIN'

export function documentRoutes(parts: ApiParts): Route[] {
  const { gate, log } = parts
  return [
    route({
      method: 'POST',
      path: '/api/rules/validate',
      name: 'validateRules',
      summary: 'Validate a rule document without changing anything.',
      group,
      access,
      body: anyDocumentSchema,
      isCheckedByStore: true,
      responses: { 200: { description: 'The result, with all validation errors.', schema: validationSchema } },
      async handle({ body }) {
        const errors = isSingleRule(body) ? issuesOf(body) : (await inSlices(checkSteps(body))).errors
        return json({ valid: errors.length === 0, errors })
      },
    }),
    route({
      method: 'POST',
      path: '/api/reload',
      name: 'reload',
      summary: 'Reload the rules.',
      group,
      access,
      body: reloadSchema,
      isBodyOptional: true,
      responses: {
        200: { description: 'The rules are in effect.', schema: reloadedSchema },
        409: { description: 'The rules cannot be loaded. The previous rules stay in effect.' },
      },
      async handle(call) {
        const requested = call.body?.ruleSetId ?? undefined
        audit(log, call, 'RELOAD', requested === undefined ? {} : { ruleSetId: requested })
        await applyStoredRules(parts, 'The previous rules stay in effect.')
        const ruleSets = gate.ruleSets
          .filter(({ id }) => requested === undefined || id === requested)
          .map(({ id, rules }) => ({ id, rules: rules.length }))
          .sort((a, b) => (a.id < b.id ? -1 : 1))
        if (requested !== undefined && ruleSets.length === 0)
          throw notFound(`Rule set ${quotedId(requested)} does not exist. All other rule sets were reloaded.`)
        return json({ ruleSets })
      },
    }),
  ]
}

const isSingleRule = (body: unknown): boolean =>
  typeof body === 'object' && body !== null && 'bands' in body && !('rules' in body) && !('ruleSets' in body)

function issuesOf(rule: unknown): readonly ValidationIssue[] {
  try {
    validateRule(rule)
    return []
  } catch (error) {
    if (error instanceof FluxGateError) return error.errors
    throw error
  }
}
