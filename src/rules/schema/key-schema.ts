import { type LimitScope, limitScopes, type Rule } from '../../core/rule.js'
import { type Fields, type Kind, oneSpelling } from '../../validation/fields.js'
import { quoted } from '../../validation/issues.js'
import { identifier, oneOf } from '../../validation/kinds.js'

export const maxKeyFields = 16
const plainFields = ['IP', 'USER_ID', 'API_KEY', 'METHOD', 'PATH']

const scopeKind = oneOf(limitScopes, [
  ['PER_IP', 'IP'],
  ['PER_USER', 'USER_ID'],
  ['PER_API_KEY', 'API_KEY'],
])

const fieldForms = `one of ${plainFields.join(', ')}, attributes.x, header.x, path.x`

/** A field of the request that identifies a client. Header names are converted to lower case. */
const keyFieldKind: Kind<string> = {
  allowed: fieldForms,
  parse(value) {
    if (typeof value !== 'string') return undefined
    return plainFields.includes(value) ? value : memberField(value)
  },
}

/** Returns a normalized `attributes.x`, `header.x` or `path.x`, or `undefined` for other names. */
export function memberField(name: string): string | undefined {
  if (/^attributes\.[^\p{Cc}]{1,128}$/u.test(name)) return name
  if (/^header\.[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/.test(name)) return name.toLowerCase()
  return /^path\.[A-Za-z0-9_-]{1,64}$/.test(name) ? name : undefined
}

type Keys = Pick<Rule, 'limitScope' | 'compositeKeyFields' | 'keyField' | 'keyResolver'>

/** Reads the fields that define the key of a rule. A field that the scope would ignore is reported, because its author expects an effect. */
export function readKeys(fields: Fields): Keys {
  const spelling = oneSpelling(fields, ['limitScope', 'scope'])
  const limitScope = spelling === undefined ? 'IP' : fields.read(spelling, scopeKind)
  const compositeKeyFields = readCompositeFields(fields, limitScope)
  const keyField = fields.read('keyField', keyFieldKind)
  const keyResolver = fields.read('keyResolver', identifier)
  if (limitScope !== undefined) checkCustom(fields, limitScope)
  return {
    limitScope: limitScope ?? 'IP',
    compositeKeyFields,
    ...(keyField !== undefined && { keyField }),
    ...(keyResolver !== undefined && { keyResolver }),
  }
}

function readCompositeFields(fields: Fields, scope: LimitScope | undefined): readonly string[] {
  const name = 'compositeKeyFields'
  const given = fields.value(name)
  if (scope === 'COMPOSITE') return withoutRepeats(fields, fields.list(name, keyFieldKind, maxKeyFields))
  // Some stores write every field, with an empty list for an omitted one.
  if (given === undefined || (Array.isArray(given) && given.length === 0)) return []
  if (scope !== undefined) fields.wrong(name, `must be omitted with limitScope ${scope}; it requires COMPOSITE`)
  return fields.list(name, keyFieldKind, maxKeyFields)
}

function withoutRepeats(fields: Fields, given: readonly string[]): readonly string[] {
  const repeated = given.find((field, index) => given.indexOf(field) !== index)
  if (repeated !== undefined) {
    fields.wrong('compositeKeyFields', `must not contain duplicates; received ${quoted(repeated)} twice`)
  }
  return given
}

function checkCustom(fields: Fields, scope: LimitScope): void {
  const custom = ['keyField', 'keyResolver'].filter((name) => fields.has(name))
  if (scope === 'CUSTOM' && custom.length === 0) {
    fields.wrong('keyField', 'must be given with limitScope CUSTOM, unless keyResolver is; received neither')
  }
  if (scope === 'CUSTOM' && custom.length === 2) {
    fields.wrong('keyResolver', 'must not be combined with keyField; use only one of keyField and keyResolver')
  }
  if (scope === 'CUSTOM') return
  for (const name of custom) fields.wrong(name, `must be omitted with limitScope ${scope}; it requires CUSTOM`)
}
