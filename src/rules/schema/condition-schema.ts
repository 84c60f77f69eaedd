import { isIP } from 'node:net'
import type { Condition } from '../../core/rule.js'
import { type Fields, fieldsOf, isObject, type Kind, wrongValue } from '../../validation/fields.js'
import { quoted, type ValidationIssues } from '../../validation/issues.js'
import { memberField } from './key-schema.js'
import { methodName } from './method-schema.js'

const maxValues = 1_000
const maxLength = 1_024
const plainFields = ['clientIp', 'userId', 'apiKey', 'method']
const fieldForms = `attributes.x, header.x, path.x, ${plainFields.join(', ')}`

/** Reads `when`, a map from field to value or list of values. A request matches if every field has one of its values. */
export function readWhen(fields: Fields, issues: ValidationIssues): readonly Condition[] {
  const when = fields.value('when')
  if (when === undefined) return []
  if (!isObject(when)) {
    fields.wrong(
      'when',
      wrongValue(when, `an object whose keys are ${fieldForms}, and whose values are a value or a list of values`),
    )
    return []
  }
  const values = fieldsOf(when, fields.at('when'), issues)
  const conditions = new Map<string, Condition>()
  for (const name of Object.keys(when)) {
    if (!values.has(name)) continue
    const field = plainFields.includes(name) ? name : memberField(name)
    if (field === undefined) values.wrong(name, `unknown field ${quoted(name)}; allowed: ${fieldForms}`)
    else if (conditions.has(field))
      values.wrong(name, `must be unique; ${field} is already given with different letter case`)
    else conditions.set(field, { field, values: readValues(values, name, kindOf(field)) })
  }
  return [...conditions.values()]
}

function readValues(values: Fields, name: string, kind: Kind<string>): readonly string[] {
  if (Array.isArray(values.value(name))) return [...new Set(values.list(name, kind, maxValues))]
  const value = values.read(name, kind)
  return value === undefined ? [] : [value]
}

const kindOf = (field: string): Kind<string> =>
  field === 'clientIp' ? addressRange : field === 'method' ? methodName : plainValue

/** Numbers and booleans become strings, because header values are strings. */
const plainValue: Kind<string> = {
  allowed: `a string of at most ${maxLength} characters, a number, true or false`,
  parse(value) {
    if (typeof value === 'string') return value.length <= maxLength ? value : undefined
    return typeof value === 'boolean' || Number.isFinite(value) ? String(value) : undefined
  },
}

const addressRange: Kind<string> = {
  allowed: 'an IP address, or a range such as 10.0.0.0/8 or 2001:db8::/32',
  parse: (value) => (typeof value === 'string' && isAddressRange(value) ? value : undefined),
}

function isAddressRange(value: string): boolean {
  const [, address = '', bits] = /^([0-9A-Fa-f.:]{2,45})(?:\/(0|[1-9]\d{0,2}))?$/.exec(value) ?? []
  const version = isIP(address)
  return version !== 0 && (bits === undefined || Number(bits) <= (version === 4 ? 32 : 128))
}
