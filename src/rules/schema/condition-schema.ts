import { isIP } from 'node:net'
import type { Condition } from '../../core/rule.js'
import { type Fields, fieldsOf, isObject, type Kind, wrongValue } from '../../validation/fields.js'
import type { Mistakes } from '../../validation/issues.js'
import { memberField } from './key-schema.js'
import { methodName } from './method-schema.js'

const maxValues = 1_000
const maxLength = 1_024
const plainFields = ['clientIp', 'userId', 'apiKey', 'method']
const fieldForms = `attributes.x, header.x, path.x, ${plainFields.join(', ')}`

/** `when`: field → value or list of values. Every field must hold, by any one of its values. */
export function readWhen(fields: Fields, mistakes: Mistakes): readonly Condition[] {
  const when = fields.value('when')
  if (when === undefined) return []
  if (!isObject(when)) {
    fields.wrong('when', wrongValue(when, `a map from ${fieldForms} to a value or a list of values`))
    return []
  }
  const values = fieldsOf(when, fields.at('when'), mistakes)
  const conditions = new Map<string, Condition>()
  for (const name of Object.keys(when)) {
    if (!values.has(name)) continue
    const field = plainFields.includes(name) ? name : memberField(name)
    if (field === undefined) values.wrong(name, `unknown condition; allowed: ${fieldForms}`)
    else if (conditions.has(field)) values.wrong(name, `a duplicate of ${field}; allowed: each field once`)
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

/** Numbers and booleans are compared by their text, as a header would bring them. */
const plainValue: Kind<string> = {
  allowed: `text of at most ${maxLength} characters, a number, true or false`,
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
