import { parseCidr } from '../../../core/keys/ip-address.js'
import type { Condition } from '../../../core/rule.js'
import { fieldsOf, isObject } from '../../../validation/fields.js'
import { quoted, type ValidationIssues } from '../../../validation/issues.js'
import { described, type Kind, structured, wrongValue } from '../../../validation/kind.js'
import { oneOrMore } from '../../../validation/structures.js'
import { memberField } from './key-schema.js'
import { methodName } from './request-kinds.js'

const maxValues = 1_000
const maxLength = 1_024

/** Numbers and booleans become strings, because header values are strings. */
const plainValue: Kind<string> = {
  allowed: `a string of at most ${maxLength} characters, a number, true or false`,
  schema: { type: ['string', 'number', 'boolean'], maxLength },
  parse(value) {
    if (typeof value === 'string') return value.length <= maxLength ? value : undefined
    return typeof value === 'boolean' || Number.isFinite(value) ? String(value) : undefined
  },
}

const addressRange: Kind<string> = {
  allowed: 'an IP address, or a range such as 10.0.0.0/8 or 2001:db8::/32',
  schema: { type: 'string' },
  parse: (value) => (typeof value === 'string' && isAddressRange(value) ? value : undefined),
}

/** A scope such as `%eth0` is not allowed. */
const isAddressRange = (value: string): boolean =>
  /^[0-9A-Fa-f.:/]{2,49}$/.test(value) && parseCidr(value) !== undefined

const plainFields: ReadonlyMap<string, Kind<string>> = new Map([
  ['clientIp', addressRange],
  ['userId', plainValue],
  ['apiKey', plainValue],
  ['method', methodName],
])
const fieldForms = `attributes.x, header.x, path.x, ${[...plainFields.keys()].join(', ')}`
const whenForms = `an object whose keys are ${fieldForms}, and whose values are a value or a list of values`

/** A map from field to value or list of values. A request matches if every field has one of its values. */
export const whenKind: Kind<readonly Condition[]> = described(
  structured(
    whenForms,
    { type: 'object', additionalProperties: oneOrMore(plainValue, maxValues).schema },
    (value, path, issues) => {
      if (isObject(value)) return readConditions(value, path, issues)
      issues.add(path, wrongValue(value, whenForms))
      return undefined
    },
  ),
  'Conditions that must all hold, such as `attributes.tier: premium`.',
)

function readConditions(when: Readonly<Record<string, unknown>>, path: string, issues: ValidationIssues): Condition[] {
  const kinds = Object.keys(when).map(
    (name) => [name, oneOrMore(plainFields.get(name) ?? plainValue, maxValues)] as const,
  )
  const fields = fieldsOf(when, path, Object.fromEntries(kinds), issues)
  const conditions = new Map<string, Condition>()
  for (const [name] of kinds) {
    if (!fields.has(name)) continue
    const field = plainFields.has(name) ? name : memberField(name)
    if (field === undefined) fields.report(name, `unknown field ${quoted(name)}; allowed: ${fieldForms}`)
    else if (conditions.has(field))
      fields.report(name, `must be unique; ${field} is already given with different letter case`)
    else conditions.set(field, { field, values: [...new Set(fields.read(name) ?? [])] })
  }
  return [...conditions.values()]
}
