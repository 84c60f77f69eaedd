import type { Fields, Kind } from '../../validation/fields.js'

export const maxMethods = 64

/** One HTTP method, in upper case. */
export const methodName: Kind<string> = {
  allowed: 'an HTTP method such as GET',
  parse: (value) =>
    typeof value === 'string' && /^[A-Za-z][A-Za-z0-9_-]{0,31}$/.test(value) ? value.toUpperCase() : undefined,
}

const methodOrAny: Kind<string> = {
  allowed: 'an HTTP method such as GET, a list of them, or *',
  parse: (value) => (value === '*' ? '*' : methodName.parse(value)),
}

/** `GET`, `[GET, HEAD]` or `*`; nothing in the result means any. */
export function readMethods(fields: Fields): readonly string[] {
  const isList = Array.isArray(fields.value('method'))
  const methods = isList ? fields.list('method', methodOrAny, maxMethods) : [fields.read('method', methodOrAny) ?? '*']
  return methods.includes('*') ? [] : [...new Set(methods)]
}
