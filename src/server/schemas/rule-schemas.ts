/** Bodies of rules and rule sets. `rules/schema` describes and validates rules; these schemas are for the OpenAPI document. */

import { ruleSetKinds } from '../../rules/schema/parse-rules.js'
import { ruleKinds } from '../../rules/schema/rule-schema.js'
import { described, withSchema } from '../../validation/kind.js'
import { anyValue, boolean, boundedText, oneOf, text, wholeNumber } from '../../validation/kinds.js'
import { nullable, object } from '../../validation/structures.js'
import { count, cursorSchema, dateTime, listOf, textOrNull, validationIssueSchema } from './common-schemas.js'

const open = { isOpen: true }
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

export const ruleSetSchema = object(
  { id: setId, rules, version: described(wholeNumber(1), 'Increases with every change. The ETag.') },
  optionalSetKinds,
  { title: 'RuleSet', ...open },
)

export const ruleSetBodySchema = object(
  { rules },
  { id: setId, ...optionalSetKinds, version: described(version, 'Ignored.') },
  { title: 'RuleSetToPut' },
)

export const ruleSetPageSchema = object(
  { ruleSets: listOf(ruleSetSchema), cursor: cursorSchema },
  {},
  { title: 'RuleSetPage', ...open },
)

export const rulePageSchema = object(
  { rules: listOf(ruleSchema), cursor: cursorSchema },
  {},
  { title: 'RulePage', ...open },
)

const versionOfDocument = described(anyValue, 'The document; null if it did not exist.')

const changeSchema = object(
  {
    at: dateTime(),
    by: text,
    action: oneOf(['PUT_SET', 'DELETE_SET', 'PUT_RULE', 'DELETE_RULE']),
    ruleSetId: text,
    ruleId: textOrNull(),
    version: count(),
    before: versionOfDocument,
    after: versionOfDocument,
  },
  {},
  { title: 'Change', ...open },
)

export const historySchema = object(
  { changes: listOf(changeSchema, 'Newest first.'), cursor: cursorSchema },
  {},
  { title: 'History', ...open },
)

export const anyDocumentSchema = withSchema(anyValue, {
  title: 'RuleDocuments',
  description: '`{ ruleSets: [...] }`, a list of rule sets, one rule set, or one rule.',
})

export const validationSchema = object(
  { valid: boolean, errors: listOf(validationIssueSchema) },
  {},
  { title: 'Validation', ...open },
)

export const reloadSchema = object({}, { ruleSetId: nullable(boundedText(0, 128)) }, { title: 'Reload', ...open })

export const reloadedSchema = object(
  { ruleSets: listOf(object({ id: text, rules: count() }, {}, { title: 'ReloadedRuleSet', ...open })) },
  {},
  { title: 'Reloaded', description: 'The current rule sets, or only the requested one.', ...open },
)
