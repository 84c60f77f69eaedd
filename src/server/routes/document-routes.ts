import { FluxGateError, type Mistake } from '../../core/errors.js'
import { inSlices } from '../../core/scheduling/steps.js'
import { checkSteps } from '../../rules/schema/schema.js'
import { checkedRule } from '../../rules/store/rule-document.js'
import type { ApiParts } from '../api-parts.js'
import { audit } from '../audit.js'
import { json, type Route, route } from '../request/route.js'
import { putInForce } from '../rules-in-force.js'
import { anyDocumentSchema, reloadedSchema, reloadSchema, validationSchema } from '../schemas/rule-schemas.js'
import { inQuotes, nothingHere } from './rule-editing.js'

const group = 'Rules'
const access = 'ADMIN'

export function documentRoutes(parts: ApiParts): Route[] {
  const { gate, log } = parts
  return [
    route({
      method: 'POST',
      path: '/api/rules/validate',
      name: 'validateRules',
      summary: 'Every mistake of a rule document; nothing is changed.',
      group,
      access,
      body: anyDocumentSchema,
      isCheckedByStore: true,
      responses: { 200: { description: 'Whether it has mistakes, and which.', schema: validationSchema } },
      async handle({ body }) {
        const errors = isLoneRule(body) ? mistakesOf(body) : (await inSlices(checkSteps(body))).errors
        return json({ valid: errors.length === 0, errors })
      },
    }),
    route({
      method: 'POST',
      path: '/api/reload',
      name: 'reload',
      summary: 'Load the rules again, now.',
      group,
      access,
      body: reloadSchema,
      isBodyOptional: true,
      responses: {
        200: { description: 'They are in force.', schema: reloadedSchema },
        409: { description: 'They cannot be loaded; those from before are in force.' },
      },
      async handle(call) {
        const asked = call.body?.ruleSetId ?? undefined
        audit(log, call, 'RELOAD', asked === undefined ? {} : { ruleSetId: asked })
        await putInForce(parts, 'The rules from before stay in force.')
        const ruleSets = gate.ruleSets
          .filter(({ id }) => asked === undefined || id === asked)
          .map(({ id, rules }) => ({ id, rules: rules.length }))
          .sort((a, b) => (a.id < b.id ? -1 : 1))
        if (asked !== undefined && ruleSets.length === 0)
          throw nothingHere(`There is no rule set ${inQuotes(asked)}; the others were reloaded.`)
        return json({ ruleSets })
      },
    }),
  ]
}

const isLoneRule = (body: unknown): boolean =>
  typeof body === 'object' && body !== null && 'bands' in body && !('rules' in body) && !('ruleSets' in body)

function mistakesOf(rule: unknown): readonly Mistake[] {
  try {
    checkedRule(rule)
    return []
  } catch (error) {
    if (error instanceof FluxGateError) return error.errors
    throw error
  }
}
