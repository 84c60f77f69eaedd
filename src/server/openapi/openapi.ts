import { STATUS_CODES } from 'node:http'
import { overrideKeyKind } from '../../rules/schema/overrides/override-schema.js'
import type { JsonSchema as Json } from '../../validation/kind.js'
import { identifier } from '../../validation/kinds.js'
import type { ResponseSpec, Route } from '../request/route.js'
import { problemSchema } from '../schemas/common-schemas.js'

/** Replaces the components in a schema with references. */
type Referring = (schema: Json) => unknown

/** The tokens that the server requires. */
export interface RequiredTokens {
  readonly admin: boolean
  readonly check: boolean
}

/** Tag descriptions, by route group. */
const groups: Readonly<Record<string, string>> = {
  Decisions: 'Check requests against the limits, and refund permits.',
  'Rule sets': 'Rule sets with all their rules.',
  Rules: 'Single rules, validation and reload.',
  Candidates: 'Other versions of a rule set, evaluated beside the current one without effect.',
  Overrides: 'Exceptions to a rule for single keys.',
  Bans: 'Keys that a rule rejects after repeated rejections.',
  Buckets: 'The state of one key under a rule.',
  Statistics: 'Recent decisions, counts and events.',
  Operations: 'Health, metrics and the console.',
}

/** Builds the OpenAPI 3.1 document. A schema with a title becomes a component of that name. */
export function openApiOf(routes: readonly Route[], version: string, tokens: RequiredTokens): Json {
  const schemas: Record<string, unknown> = {}
  const referring: Referring = (schema) => withReferences(schema, schemas)
  const paths: Record<string, Record<string, unknown>> = {}
  for (const route of routes) {
    if (hasTrailingSlash(route)) continue
    const path = route.path.replaceAll(/:(\w+)\*?/g, '{$1}')
    paths[path] ??= {}
    paths[path][route.method.toLowerCase()] = operationOf(route, tokens, referring)
  }
  referring(problemSchema.schema)
  const used = new Set(routes.map(({ group }) => group))
  return {
    openapi: '3.1.0',
    info: {
      title: 'FluxGate',
      version,
      description: 'Rate limiting over HTTP: decisions, rules, overrides and statistics.',
      license: { name: 'MIT', identifier: 'MIT' },
      contact: { name: 'FluxGate' },
    },
    servers: [{ url: '/' }],
    tags: [...used].map((name) => ({ name, description: groups[name] })),
    paths,
    components: {
      schemas,
      responses: { Problem: { description: 'Any other error.', content: problemContent } },
      ...((tokens.admin || tokens.check) && {
        securitySchemes: {
          ...(tokens.admin && {
            adminToken: { type: 'http', scheme: 'bearer', description: 'The admin token. Valid for every route.' },
          }),
          ...(tokens.check && {
            checkToken: {
              type: 'http',
              scheme: 'bearer',
              description: 'The check token. Valid for decisions and refunds.',
            },
          }),
        },
      }),
    },
  }
}

/** A redirect to the path without the slash. Clients of the document need only that path. */
const hasTrailingSlash = ({ path }: Route): boolean => path.length > 1 && path.endsWith('/')

const problemContent = { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } }

function operationOf(route: Route, tokens: RequiredTokens, referring: Referring): Json {
  const { name, summary, description = summary, group, body, isBodyOptional = false } = route
  const parameters = parametersOf(route, referring)
  const security = securityOf(route.access, tokens)
  const responses = { ...problemsOf(route, security.length > 0), ...route.responses }
  return {
    operationId: name,
    summary: summary.replace(/\.$/, ''),
    description,
    tags: [group],
    security,
    ...(parameters.length > 0 && { parameters }),
    ...(body && {
      requestBody: { required: !isBodyOptional, content: { [typeOf(route)]: { schema: referring(body.schema) } } },
    }),
    responses: {
      ...Object.fromEntries(
        Object.entries(responses).map(([status, response]) => [
          status,
          responseOf(Number(status), response, referring),
        ]),
      ),
      default: { $ref: '#/components/responses/Problem' },
    },
  }
}

const typeOf = ({ method }: Route): string => (method === 'PATCH' ? 'application/merge-patch+json' : 'application/json')

/** Must match `Tokens.admit`. A test requests every route without a token. */
function securityOf(access: Route['access'], { admin, check }: RequiredTokens): Json[] {
  if (access === 'PUBLIC') return []
  return [...(access === 'CHECK' && check ? [{ checkToken: [] }] : []), ...(admin ? [{ adminToken: [] }] : [])]
}

/** Error responses that follow from the inputs of a route. Its own `responses` take precedence. */
function problemsOf({ path, query, body, headers = {} }: Route, isGuarded: boolean): Record<number, ResponseSpec> {
  const statuses = [
    ...(query || body || path.includes(':') ? [400] : []),
    ...(isGuarded ? [401] : []),
    403,
    ...(path.includes(':') ? [404] : []),
    ...(Object.hasOwn(headers, 'If-Match') ? [412] : []),
    ...(body ? [413, 415] : []),
  ]
  return Object.fromEntries(statuses.map((status) => [status, { description: problemTexts[status] ?? '' }]))
}

const problemTexts: Readonly<Record<number, string>> = {
  400: 'The request is invalid. `errors` lists every error with its location.',
  401: 'The token is missing or invalid.',
  403: 'The Host header is not allowed, the request comes from a page of another site, or the rules are read-only.',
  404: 'Not found.',
  412: 'The current version does not satisfy `If-Match` or `If-None-Match`. Nothing was changed.',
  413: 'The body is too large.',
  415: 'The body is not JSON in UTF-8.',
}

const pathSchemas: Readonly<Record<string, Json>> = {
  id: identifier.schema,
  ruleId: identifier.schema,
  key: overrideKeyKind.schema,
  file: { type: 'string', minLength: 1 },
}
const pathDescriptions: Readonly<Record<string, string>> = {
  id: 'Rule set ID.',
  ruleId: 'Rule ID.',
  file: 'Path of the file in the folder of the console.',
  key: 'Key of the override or the ban. A slash may be written as is or as `%2F`.',
}

function parametersOf({ path, query, headers = {} }: Route, referring: Referring): Json[] {
  const required = (query?.schema.required ?? []) as readonly string[]
  const parameters = (query?.schema.properties ?? {}) as Readonly<Record<string, Json>>
  return [
    ...[...path.matchAll(/:(\w+)/g)].map(([, name = '']) => ({
      name,
      in: 'path',
      required: true,
      description: pathDescriptions[name],
      schema: pathSchemas[name],
    })),
    ...Object.entries(parameters).map(([name, schema]) => ({
      name,
      in: 'query',
      required: required.includes(name),
      ...('description' in schema && { description: schema.description }),
      ...('type' in schema && schema.type === 'boolean' && { allowEmptyValue: true }),
      schema: referring(schema),
    })),
    ...Object.entries(headers).map(([name, description]) => ({
      name,
      in: 'header',
      required: false,
      description,
      schema: { type: 'string' },
    })),
  ]
}

function responseOf(
  status: number,
  { description, schema, type, headers = {} }: ResponseSpec,
  referring: Referring,
): Json {
  const isProblem = schema === undefined && type === undefined && status >= 400
  const content = isProblem
    ? problemContent
    : schema !== undefined
      ? { 'application/json': { schema: referring(schema.schema) } }
      : type !== undefined
        ? Object.fromEntries([type].flat().map((one) => [one, { schema: { type: 'string' } }]))
        : undefined
  return {
    description: description || STATUS_CODES[status],
    ...(Object.keys(headers).length > 0 && {
      headers: Object.fromEntries(
        Object.entries(headers).map(([name, text]) => [name, { description: text, schema: { type: 'string' } }]),
      ),
    }),
    ...(content && { content }),
  }
}

/** Copies a schema, replaces nested schemas that have a title with references, and adds those to `schemas`. */
function withReferences(schema: unknown, schemas: Record<string, unknown>): unknown {
  if (Array.isArray(schema)) return schema.map((item) => withReferences(item, schemas))
  if (typeof schema !== 'object' || schema === null) return schema
  const { title, ...rest } = schema as { title?: unknown }
  const copy = () =>
    Object.fromEntries(
      Object.entries(rest).map(([name, value]) => [
        name,
        // A property may itself be named `title`.
        name === 'properties' ? eachProperty(value as object, schemas) : withReferences(value, schemas),
      ]),
    )
  if (typeof title !== 'string') return copy()
  // Reserve the name before the parts are processed, so that components appear in the order of first use.
  if (!Object.hasOwn(schemas, title)) {
    schemas[title] = undefined
    schemas[title] = copy()
  }
  return { $ref: `#/components/schemas/${title}` }
}

const eachProperty = (properties: object, schemas: Record<string, unknown>): object =>
  Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, withReferences(schema, schemas)]))
