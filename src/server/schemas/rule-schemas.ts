/** Bodies of rules and rule sets. `rules/schema` describes and validates rules; these schemas are for the OpenAPI document. */

import { ruleSetKinds } from '../../rules/schema/parse-rules.js'
import { ruleKinds } from '../../rules/schema/rule-schema.js'
import { described, withSchema } from '../../validation/kind.js'
import { anyValue, boolean, boundedText, oneOf, text, wholeNumber } from '../../validation/kinds.js'
import { nullable, object } from '../../validation/structures.js'
import {
  count,
  cursorSchema,
  dateTime,
  listOf,
  openObject,
  textOrNull,
  validationIssueSchema,
} from './common-schemas.js'

const { id, bands, ...optionalRuleKinds } = ruleKinds

export const ruleSchema = object({ id, bands }, optionalRuleKinds, { title: 'Rule' })

/** `id` is optional, because the URL contains it. */
export const ruleBodySchema = object({ bands }, { id, ...optionalRuleKinds }, { title: 'RuleToPut' })

export const rulePatchSchema = withSchema(anyValue, {
  type: 'object',
  title: 'RulePatch',
  description: 'JSON merge patch (RFC 7396): the members to change. null removes a member.',
  additionalProperties: true,
})

const { id: setId, version, rules: _, ...optionalSetKinds } = ruleSetKinds
const rules = listOf(ruleSchema)

export const ruleSetSchema = openObject(
  'RuleSet',
  { id: setId, rules, version: described(wholeNumber(1), 'Increases with every change. The ETag.') },
  optionalSetKinds,
)

export const ruleSetBodySchema = object(
  { rules },
  { id: setId, ...optionalSetKinds, version: described(version, 'Ignored.') },
  { title: 'RuleSetToPut' },
)

export const ruleSetPageSchema = openObject('RuleSetPage', { ruleSets: listOf(ruleSetSchema), cursor: cursorSchema })

export const rulePageSchema = openObject('RulePage', { rules: listOf(ruleSchema), cursor: cursorSchema })

const versionOfDocument = described(anyValue, 'The document; null if it did not exist.')

const changeSchema = openObject('Change', {
  at: dateTime(),
  by: text,
  action: oneOf(['PUT_SET', 'DELETE_SET', 'PUT_RULE', 'DELETE_RULE']),
  ruleSetId: text,
  ruleId: textOrNull(),
  version: count(),
  before: versionOfDocument,
  after: versionOfDocument,
})

export const historySchema = openObject('History', {
  changes: listOf(changeSchema, 'Newest first.'),
  cursor: cursorSchema,
})

export const anyDocumentSchema = withSchema(anyValue, {
  title: 'RuleDocuments',
  description: '`{ ruleSets: [...] }`, a list of rule sets, one rule set, or one rule.',
})

export const validationSchema = openObject('Validation', { valid: boolean, errors: listOf(validationIssueSchema) })

export const reloadSchema = openObject('Reload', {}, { ruleSetId: nullable(boundedText(0, 128)) })

export const reloadedSchema = openObject(
  'Reloaded',
  { ruleSets: listOf(openObject('ReloadedRuleSet', { id: text, rules: count() })) },
  {},
  'The current rule sets, or only the requested one.',
)
