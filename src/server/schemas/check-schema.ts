import { type Costs, maxCapacity } from '../../core/rule.js'
import { isObject } from '../../validation/fields.js'
import { placeOf } from '../../validation/issues.js'
import { described, type Kind, readValue, secret, type ValueOf, wrongValue } from '../../validation/kind.js'
import { boolean, boundedText, wholeNumber } from '../../validation/kinds.js'
import { list, nullable } from '../../validation/structures.js'
import { openObject } from './common-schemas.js'

const textField = (maxLength: number, description: string): Kind<string | null> =>
  described(nullable(boundedText(0, maxLength)), description)

const headerText = boundedText(0, 8_192)
const headerList = list(headerText, { min: 0, max: 100 })

const headerValue: Kind<string | readonly string[] | null> = {
  allowed: `${headerText.allowed}, a list of at most 100 strings, or null`,
  schema: { anyOf: [nullable(headerText).schema, headerList.schema] },
  parse: (value) => (value === null ? null : (headerText.parse(value) ?? headerList.parse(value))),
}

const isHeaders = (value: unknown): value is Readonly<Record<string, unknown>> =>
  isObject(value) && Object.keys(value).length <= 100

const headers: Kind<Readonly<Record<string, ValueOf<typeof headerValue>>>> = {
  allowed: 'an object of at most 100 headers',
  schema: {
    type: 'object',
    maxProperties: 100,
    additionalProperties: headerValue.schema,
    description: 'Request headers, for rules that use `header.x`. Names are case-insensitive.',
  },
  parse(value) {
    if (!isHeaders(value)) return undefined
    for (const name in value) if (headerValue.parse(value[name]) === undefined) return undefined
    return value as Readonly<Record<string, string>>
  },
  read(value, path, issues) {
    if (!isHeaders(value)) issues.add(path, wrongValue(value, headers.allowed))
    else for (const name in value) readValue(headerValue, value[name], placeOf(path, name), issues)
    return value as Readonly<Record<string, string>>
  },
}

const attributes: Kind<Readonly<Record<string, unknown>>> = {
  allowed: 'an object of at most 1000 attributes',
  schema: {
    type: 'object',
    maxProperties: 1_000,
    additionalProperties: true,
    description: 'Attributes, for rules that use `attributes.x`.',
  },
  parse: (value) => (isObject(value) && Object.keys(value).length <= 1_000 ? value : undefined),
}

const amount = wholeNumber(0, maxCapacity)

const isCosts = (value: unknown): value is Readonly<Record<string, unknown>> =>
  isObject(value) && Object.keys(value).length <= 16

const costs: Kind<Costs> = {
  allowed: `an object of at most 16 costs, each ${amount.allowed}`,
  schema: {
    type: 'object',
    maxProperties: 16,
    additionalProperties: amount.schema,
    description: 'Further costs by name, such as `{"tokens":1200}`, for rules with `cost`. `requests` means `permits`.',
  },
  parse(value) {
    const isValid = isCosts(value) && Object.values(value).every((one) => amount.parse(one) !== undefined)
    return isValid ? (value as Costs) : undefined
  },
  read(value, path, issues) {
    if (!isCosts(value)) issues.add(path, wrongValue(value, costs.allowed))
    else for (const name in value) readValue(amount, value[name], placeOf(path, name), issues)
    return value as Costs
  },
}

/** The fields that describe a request. */
export const requestFields = {
  ruleSetId: textField(
    128,
    'Default: the configured rule set, the only one, or the one named `default`, in this order.',
  ),
  key: textField(1_024, "Key to count in place of each rule's `limitScope`, except GLOBAL."),
  clientIp: textField(256, 'Client IP address.'),
  userId: textField(1_024, 'User ID.'),
  apiKey: secret(textField(1_024, 'API key.')),
  endpoint: textField(8_192, 'Request path. A query string is ignored.'),
  path: textField(8_192, 'Same as `endpoint`. Takes precedence if both are given.'),
  method: textField(64, 'HTTP method, case-insensitive.'),
  headers: nullable(headers),
  attributes: nullable(attributes),
  permits: described(
    nullable(wholeNumber(0, maxCapacity)),
    "Multiplies the rule's own `permits`. 0 charges nothing and returns the current state. Default: 1.",
  ),
  costs: nullable(costs),
}

const checkFields = {
  ...requestFields,
  peek: described(nullable(boolean), 'Return the decision and charge nothing. Default: false.'),
}

export const checkSchema = openObject(
  'Check',
  {},
  checkFields,
  'The request to decide. An unknown member has no effect and causes a warning.',
)

export const maxBatch = 1_000

export const batchSchema = openObject(
  'CheckBatch',
  { checks: list(checkSchema, { min: 0, max: maxBatch }) },
  {},
  'Checks, decided independently and in this order.',
)

export const refundSchema = openObject(
  'Refund',
  {},
  requestFields,
  'The check to refund. Permits are returned up to the capacity.',
)

export const refundedSchema = openObject('Refunded', {
  permits: described(wholeNumber(0), 'Permits returned to each rule, before multiplication by its own `permits`.'),
})

export const holdSchema = openObject('Hold', {
  holdId: described(boundedText(1, 65_536), 'The `holdId` of a decision.'),
})

export const releasedSchema = openObject('Released', {
  released: described(boolean, 'False if the hold has expired, was released before, or is unknown.'),
})

export const renewedSchema = openObject('Renewed', {
  renewed: described(boolean, 'False if the hold has expired, was released before, or is unknown.'),
})

export type CheckBody = ValueOf<typeof checkSchema>
export type RefundBody = ValueOf<typeof refundSchema>

/** The members of a check and, because they are the same request, of a refund. */
export const checkMembers: readonly string[] = Object.keys(checkFields)
