import { omitUndefined } from '../../core/omit-undefined.js'
import { isObject, itemsOf, openFields, wrongValue } from '../../validation/fields.js'
import { quoted, type ValidationIssues } from '../../validation/issues.js'
import { identifier } from '../../validation/kinds.js'
import { camelCase } from '../../validation/setting-names.js'
import type { RouteTimeouts } from '../upstream/exchange.js'
import { type Origin, parseOrigin } from '../upstream/origin.js'
import { type Filter, filterForms } from './filters.js'
import { routeTimeout } from './kinds.js'
import type { RouteLimit } from './limit.js'
import { type PartForms, readPart } from './part.js'
import { predicateForms } from './predicate-schema.js'
import type { Route } from './route.js'

/** A parsed route. Its limits are not resolved to rule sets yet. */
export interface RouteDefinition extends Omit<Route, 'limits'> {
  readonly limits: readonly RouteLimit[]
}

export const routesForm = 'a list of routes: { id, uri, predicates, filters }'
const routeFields = ['id', 'uri', 'predicates', 'filters', 'metadata']
const timeoutFields = ['connectTimeout', 'responseTimeout']
const uriForm = 'http://host:port or https://host:port without a path'
const maxRoutes = 10_000

/** Parses the routes of a document. Continues after an issue, so that all issues are reported at once. */
export function readRoutes(
  value: unknown,
  path: string,
  issues: ValidationIssues,
): readonly RouteDefinition[] | undefined {
  const list = itemsOf(value)
  if (list === undefined || list.length > maxRoutes) {
    issues.add(path, wrongValue(value, routesForm))
    return undefined
  }
  const owners = new Map<string, number>()
  return list.flatMap((item, index) => {
    const place = `${path}[${index}]`
    const route = readRoute(camelKeys(item), place, issues)
    if (route === undefined) return []
    const owner = owners.get(route.id)
    if (owner !== undefined)
      issues.add(`${place}.id`, `must be unique; ${quoted(route.id)} is also the id of ${path}[${owner}]`)
    else owners.set(route.id, index)
    return [route]
  })
}

function readRoute(value: unknown, path: string, issues: ValidationIssues): RouteDefinition | undefined {
  const before = issues.count
  const fields = openFields(value, path, routeFields, 'a route: { id, uri, predicates, filters }', issues)
  if (fields === undefined) return undefined
  const id = fields.require('id', identifier)
  const origin = readOrigin(fields.value('uri'), fields.at('uri'), issues)
  const predicates = readParts(fields.value('predicates'), fields.at('predicates'), predicateForms, issues)
  const filters = readParts<Filter>(fields.value('filters'), fields.at('filters'), filterForms, issues)
  const timeouts = fields.has('metadata')
    ? readTimeouts(fields.value('metadata'), fields.at('metadata'), issues)
    : undefined
  if (issues.count > before || id === undefined || origin === undefined) return undefined
  return {
    id,
    origin,
    predicates,
    limits: filters.flatMap((filter) => (filter.kind === 'LIMIT' ? [filter.limit] : [])),
    pathChanges: filters.flatMap((filter) => (filter.kind === 'PATH' ? [filter.change] : [])),
    requestHeaders: filters.flatMap((filter) => (filter.kind === 'REQUEST' ? [filter.change] : [])),
    responseHeaders: filters.flatMap((filter) => (filter.kind === 'RESPONSE' ? [filter.change] : [])),
    preservesHost: filters.some(({ kind }) => kind === 'PRESERVE_HOST'),
    timeouts,
  }
}

/** Parses the metadata of a route, which holds only timeouts. */
function readTimeouts(value: unknown, path: string, issues: ValidationIssues): RouteTimeouts | undefined {
  const fields = openFields(value, path, timeoutFields, 'timeouts: { connectTimeout, responseTimeout }', issues)
  const connectTimeoutMs = fields?.read('connectTimeout', routeTimeout)
  const responseTimeoutMs = fields?.read('responseTimeout', routeTimeout)
  return omitUndefined({ connectTimeoutMs, responseTimeoutMs })
}

/** Messages do not show the URI, because it may contain a password. */
function readOrigin(value: unknown, path: string, issues: ValidationIssues): Origin | undefined {
  const origin = typeof value === 'string' ? parseOrigin(value) : undefined
  if (origin === undefined)
    issues.add(
      path,
      typeof value === 'string' ? `must be ${uriForm}; the received value is hidden` : wrongValue(value, uriForm),
    )
  return origin
}

function readParts<T>(value: unknown, path: string, forms: PartForms<T>, issues: ValidationIssues): readonly T[] {
  const list = value === undefined || value === null ? [] : itemsOf(value)
  if (list === undefined) issues.add(path, wrongValue(value, 'a list'))
  return (list ?? []).flatMap((item, index) => {
    const part = readPart(item, `${path}[${index}]`, forms, issues)
    return part === undefined ? [] : [part]
  })
}

/** Converts kebab-case names to camelCase, as everywhere in a configuration. `attributes` and `when` have free names. */
function camelKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(camelKeys)
  if (!isObject(value)) return value
  const isFree = (name: string): boolean => name === 'attributes' || name === 'when'
  const members = Object.entries(value)
  return Object.fromEntries(
    members.map(([name, member]) => [camelCase(name), isFree(name) ? member : camelKeys(member)]),
  )
}
