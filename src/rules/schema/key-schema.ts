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

const fieldForms = `${plainFields.join(', ')}, attributes.x, header.x, path.x`

/** A field that can identify a caller. Header names come out in lower case. */
const keyFieldKind: Kind<string> = {
  allowed: fieldForms,
  parse(value) {
    if (typeof value !== 'string') return undefined
    return plainFields.includes(value) ? value : memberField(value)
  },
}

/** `attributes.x`, `header.x` or `path.x`, if that is what it is. */
export function memberField(name: string): string | undefined {
  if (/^attributes\.[^\p{Cc}]{1,128}$/u.test(name)) return name
  if (/^header\.[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/.test(name)) return name.toLowerCase()
  return /^path\.[A-Za-z0-9_-]{1,64}$/.test(name) ? name : undefined
}

type Keys = Pick<Rule, 'limitScope' | 'compositeKeyFields' | 'keyField' | 'keyResolver'>

/** Whom a rule counts against. A field that the scope would ignore is a mistake: its author expects it to matter. */
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
  // Stores that keep every field write an empty list where there is nothing to say.
  if (given === undefined || (Array.isArray(given) && given.length === 0)) return []
  if (scope !== undefined) fields.wrong(name, `found with limitScope ${scope}; allowed: only with COMPOSITE`)
  return fields.list(name, keyFieldKind, maxKeyFields)
}

function withoutRepeats(fields: Fields, given: readonly string[]): readonly string[] {
  const repeated = given.find((field, index) => given.indexOf(field) !== index)
  if (repeated !== undefined) {
    fields.wrong('compositeKeyFields', `found ${quoted(repeated)} twice, a duplicate; allowed: each field once`)
  }
  return given
}

function checkCustom(fields: Fields, scope: LimitScope): void {
  const custom = ['keyField', 'keyResolver'].filter((name) => fields.has(name))
  if (scope === 'CUSTOM' && custom.length === 0) {
    fields.wrong('keyField', 'found nothing with limitScope CUSTOM; allowed: one of keyField and keyResolver')
  }
  if (scope === 'CUSTOM' && custom.length === 2) {
    fields.wrong('keyResolver', 'found beside keyField; allowed: only one of keyField and keyResolver')
  }
  if (scope === 'CUSTOM') return
  for (const name of custom) fields.wrong(name, `found with limitScope ${scope}; allowed: only with CUSTOM`)
}
