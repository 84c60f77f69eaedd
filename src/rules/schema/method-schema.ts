import type { Fields, Kind } from '../../validation/fields.js'

export const maxMethods = 64

/** An HTTP method, converted to upper case. */
export const methodName: Kind<string> = {
  allowed: 'an HTTP method such as GET',
  parse: (value) =>
    typeof value === 'string' && /^[A-Za-z][A-Za-z0-9_-]{0,31}$/.test(value) ? value.toUpperCase() : undefined,
}

const methodOrAny: Kind<string> = {
  allowed: 'an HTTP method such as GET, a list of methods, or *',
  parse: (value) => (value === '*' ? '*' : methodName.parse(value)),
}

/** Reads `GET`, `[GET, HEAD]` or `*`. An empty result means any method. */
export function readMethods(fields: Fields): readonly string[] {
  const isList = Array.isArray(fields.value('method'))
  const methods = isList ? fields.list('method', methodOrAny, maxMethods) : [fields.read('method', methodOrAny) ?? '*']
  return methods.includes('*') ? [] : [...new Set(methods)]
}
