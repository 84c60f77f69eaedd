import { given } from '../../core/omit-undefined.js'
import { isObject, itemsOf, openFields, wrongValue } from '../../validation/fields.js'
import { type Mistakes, quoted } from '../../validation/issues.js'
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

/** A route as it is written: its limits are not connected to rules yet. */
export interface RouteDefinition extends Omit<Route, 'limits'> {
  readonly limits: readonly RouteLimit[]
}

export const routesForm = 'a list of routes: { id, uri, predicates, filters }'
const routeFields = ['id', 'uri', 'predicates', 'filters', 'metadata']
const timeoutFields = ['connectTimeout', 'responseTimeout']
const uriForm = 'http://host:port or https://host:port, without a path'
const maxRoutes = 10_000

/** Routes of a document. Reading goes on after a mistake, so that its author sees all of them at once. */
export function readRoutes(value: unknown, path: string, mistakes: Mistakes): readonly RouteDefinition[] | undefined {
  const list = itemsOf(value)
  if (list === undefined || list.length > maxRoutes) {
    mistakes.add(path, wrongValue(value, routesForm))
    return undefined
  }
  const owners = new Map<string, number>()
  return list.flatMap((item, index) => {
    const place = `${path}[${index}]`
    const route = readRoute(camelKeys(item), place, mistakes)
    if (route === undefined) return []
    const owner = owners.get(route.id)
    if (owner !== undefined)
      mistakes.add(`${place}.id`, `found ${quoted(route.id)}, a duplicate of ${path}[${owner}]; allowed: unique ids`)
    else owners.set(route.id, index)
    return [route]
  })
}

function readRoute(value: unknown, path: string, mistakes: Mistakes): RouteDefinition | undefined {
  const before = mistakes.count
  const fields = openFields(value, path, routeFields, 'a route: { id, uri, predicates, filters }', mistakes)
  if (fields === undefined) return undefined
  const id = fields.require('id', identifier)
  const origin = readOrigin(fields.value('uri'), fields.at('uri'), mistakes)
  const predicates = readParts(fields.value('predicates'), fields.at('predicates'), predicateForms, mistakes)
  const filters = readParts<Filter>(fields.value('filters'), fields.at('filters'), filterForms, mistakes)
  const timeouts = fields.has('metadata')
    ? readTimeouts(fields.value('metadata'), fields.at('metadata'), mistakes)
    : undefined
  if (mistakes.count > before || id === undefined || origin === undefined) return undefined
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

/** All that a route may say about itself besides. */
function readTimeouts(value: unknown, path: string, mistakes: Mistakes): RouteTimeouts | undefined {
  const fields = openFields(value, path, timeoutFields, 'time-outs: { connectTimeout, responseTimeout }', mistakes)
  const connectTimeoutMs = fields?.read('connectTimeout', routeTimeout)
  const responseTimeoutMs = fields?.read('responseTimeout', routeTimeout)
  return given({ connectTimeoutMs, responseTimeoutMs })
}

/** What was found is not shown: there may be a password in it. */
function readOrigin(value: unknown, path: string, mistakes: Mistakes): Origin | undefined {
  const origin = typeof value === 'string' ? parseOrigin(value) : undefined
  if (origin === undefined)
    mistakes.add(path, typeof value === 'string' ? `not understood; allowed: ${uriForm}` : wrongValue(value, uriForm))
  return origin
}

function readParts<T>(value: unknown, path: string, forms: PartForms<T>, mistakes: Mistakes): readonly T[] {
  const list = value === undefined || value === null ? [] : itemsOf(value)
  if (list === undefined) mistakes.add(path, wrongValue(value, 'a list'))
  return (list ?? []).flatMap((item, index) => {
    const part = readPart(item, `${path}[${index}]`, forms, mistakes)
    return part === undefined ? [] : [part]
  })
}

/** `key-resolver` is `keyResolver`, as everywhere in a configuration. */
function camelKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(camelKeys)
  if (!isObject(value)) return value
  const isFree = (name: string): boolean => name === 'attributes' || name === 'when'
  const members = Object.entries(value)
  return Object.fromEntries(
    members.map(([name, member]) => [camelCase(name), isFree(name) ? member : camelKeys(member)]),
  )
}
