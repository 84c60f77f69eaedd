import { type LimitScope, limitScopes, type Rule } from '../../../core/rule.js'
import { type Fields, type FieldValues, givenAlias } from '../../../validation/fields.js'
import { quoted } from '../../../validation/issues.js'
import { described, type Kind, withSchema } from '../../../validation/kind.js'
import { identifier, oneOf } from '../../../validation/kinds.js'
import { list } from '../../../validation/structures.js'

const maxKeyFields = 16
const plainFields = ['IP', 'USER_ID', 'API_KEY', 'METHOD', 'PATH']

const scopeKind = oneOf(limitScopes, [
  ['PER_IP', 'IP'],
  ['PER_USER', 'USER_ID'],
  ['PER_API_KEY', 'API_KEY'],
])

/** A field of the request that identifies a client. Header names are converted to lower case. */
const keyFieldKind: Kind<string> = {
  allowed: `one of ${plainFields.join(', ')}, attributes.x, header.x, path.x`,
  schema: {
    type: 'string',
    maxLength: 139,
    pattern: `^(${plainFields.join('|')}|attributes\\..+|header\\..+|path\\..+)$`,
  },
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

/** The fields that define the key of a rule. */
export const keyKinds = {
  limitScope: described(scopeKind, 'The identity to limit. Default: IP.'),
  scope: described(scopeKind, 'Alias of `limitScope`.'),
  // Some stores write every field, with an empty list for an omitted one.
  compositeKeyFields: withSchema(list(keyFieldKind, { max: maxKeyFields }), {
    minItems: 0,
    uniqueItems: true,
    description: 'COMPOSITE only.',
  }),
  keyField: described(keyFieldKind, 'CUSTOM only: the field to use as key. Excludes `keyResolver`.'),
  keyResolver: described(identifier, 'CUSTOM only: the name of a resolver registered in code.'),
}

type Keys = Pick<Rule, 'limitScope' | 'compositeKeyFields' | 'keyField' | 'keyResolver'>

/** Reads the key of a rule. Fields that the scope would ignore are reported, because their author expects an effect. */
export function readKeys(values: FieldValues): Keys {
  const fields = values.as(keyKinds)
  const alias = givenAlias(fields, ['limitScope', 'scope'])
  const limitScope = alias === undefined ? 'IP' : fields.read(alias)
  const compositeKeyFields = readCompositeFields(fields, limitScope)
  const keyField = fields.read('keyField')
  const keyResolver = fields.read('keyResolver')
  if (limitScope !== undefined) checkCustom(fields, limitScope)
  return {
    limitScope: limitScope ?? 'IP',
    compositeKeyFields,
    ...(keyField !== undefined && { keyField }),
    ...(keyResolver !== undefined && { keyResolver }),
  }
}

function readCompositeFields(fields: Fields<typeof keyKinds>, scope: LimitScope | undefined): readonly string[] {
  const name = 'compositeKeyFields'
  const value = fields.value(name)
  if (scope !== 'COMPOSITE') {
    if (value === undefined || (Array.isArray(value) && value.length === 0)) return []
    if (scope !== undefined) fields.report(name, `must be omitted with limitScope ${scope}; it requires COMPOSITE`)
    return fields.read(name) ?? []
  }
  const keyFields = fields.require(name) ?? []
  const duplicate = keyFields.find((field, index) => keyFields.indexOf(field) !== index)
  if (duplicate !== undefined) fields.report(name, `must not contain duplicates; received ${quoted(duplicate)} twice`)
  return keyFields
}

function checkCustom(fields: FieldValues, scope: LimitScope): void {
  const custom = ['keyField', 'keyResolver'].filter((name) => fields.has(name))
  if (scope === 'CUSTOM' && custom.length === 0) {
    fields.report('keyField', 'must be given with limitScope CUSTOM, unless keyResolver is; received neither')
  }
  if (scope === 'CUSTOM' && custom.length === 2) {
    fields.report('keyResolver', 'must not be combined with keyField; use only one of keyField and keyResolver')
  }
  if (scope === 'CUSTOM') return
  for (const name of custom) fields.report(name, `must be omitted with limitScope ${scope}; it requires CUSTOM`)
}
