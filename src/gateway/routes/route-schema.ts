import { omitUndefined } from '../../core/omit-undefined.js'
import { isObject, itemsOf, openFields } from '../../validation/fields.js'
import { quoted, type ValidationIssues } from '../../validation/issues.js'
import { type Kind, structured, wrongValue } from '../../validation/kind.js'
import { identifier } from '../../validation/kinds.js'
import { camelCase } from '../../validation/setting-names.js'
import { object } from '../../validation/structures.js'
import type { RouteTimeouts } from '../upstream/exchange.js'
import { filterNotations } from './filter-notations.js'
import { originUri, routeTimeout } from './kinds.js'
import type { RouteLimit } from './limit.js'
import { notationList } from './notation.js'
import { predicateNotations } from './predicate-notations.js'
import type { Route } from './route.js'

/** A parsed route. Its limits are not resolved to rule sets yet. */
export interface RouteDefinition extends Omit<Route, 'limits'> {
  readonly limits: readonly RouteLimit[]
}

const maxRoutes = 10_000
const timeoutKinds = { connectTimeout: routeTimeout, responseTimeout: routeTimeout }

/** The metadata of a route holds only timeouts. */
const timeouts: Kind<RouteTimeouts> = structured('timeouts', object({}, timeoutKinds).schema, (value, path, issues) => {
  const fields = openFields(value, path, timeoutKinds, 'timeouts: { connectTimeout, responseTimeout }', issues)
  const connectTimeoutMs = fields?.read('connectTimeout')
  const responseTimeoutMs = fields?.read('responseTimeout')
  return omitUndefined({ connectTimeoutMs, responseTimeoutMs })
})

const routeKinds = {
  id: identifier,
  uri: originUri,
  predicates: notationList(predicateNotations),
  filters: notationList(filterNotations),
  metadata: timeouts,
}

const { id, uri, ...optionalKinds } = routeKinds
const routesForm = 'a list of routes: { id, uri, predicates, filters }'

export const routesKind: Kind<readonly RouteDefinition[]> = structured(
  `${routesForm}; as JSON in the environment`,
  { type: 'array', items: object({ id, uri }, optionalKinds).schema },
  readRoutes,
)

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
  const fields = openFields(value, path, routeKinds, 'a route: { id, uri, predicates, filters }', issues)
  if (fields === undefined) return undefined
  const id = fields.require('id')
  const origin = fields.require('uri')
  const predicates = fields.read('predicates') ?? []
  const filters = fields.read('filters') ?? []
  const timeouts = fields.read('metadata')
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
