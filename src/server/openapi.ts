import type { TSchema } from 'typebox'
import type { ResponseSpec, Route } from './route.js'
import { problemSchema } from './schemas/common-schemas.js'

type Json = Readonly<Record<string, unknown>>

/** The OpenAPI 3.1 document of these routes. Schemas with a title stand once, under that name. */
export function openApiOf(routes: readonly Route[], version: string): Json {
  const schemas: Record<string, unknown> = {}
  const referring = (schema: TSchema): unknown => withReferences(schema, schemas)
  const paths: Record<string, Record<string, unknown>> = {}
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)\*?/g, '{$1}')
    paths[path] ??= {}
    paths[path][route.method.toLowerCase()] = operationOf(route, referring)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'FluxGate',
      version,
      description:
        'Rate limiting that any language asks over HTTP: decisions, rules, overrides and what happened lately.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    tags: [...new Set(routes.map(({ group }) => group))].map((name) => ({ name })),
    paths,
    components: {
      schemas: { ...schemas, Problem: withReferences({ ...problemSchema, title: '' }, schemas) },
      responses: {
        Problem: {
          description: 'Anything else: what was wrong, as RFC 9457 with a `code`.',
          content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
        },
      },
      securitySchemes: {
        adminToken: { type: 'http', scheme: 'bearer', description: 'Opens everything.' },
        checkToken: { type: 'http', scheme: 'bearer', description: 'Opens decisions.' },
      },
    },
  }
}

function operationOf(route: Route, referring: (schema: TSchema) => unknown): Json {
  const { name, summary, group, access, body, isBodyOptional = false, responses } = route
  const parameters = parametersOf(route, referring)
  return {
    operationId: name,
    summary,
    tags: [group],
    security: securityOf(access),
    ...(parameters.length > 0 && { parameters }),
    ...(body && {
      requestBody: { required: !isBodyOptional, content: { [typeOf(route)]: { schema: referring(body) } } },
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

function securityOf(access: Route['access']): Json[] {
  if (access === 'PUBLIC') return []
  return access === 'ADMIN' ? [{ adminToken: [] }] : [{ checkToken: [] }, { adminToken: [] }]
}

function parametersOf({ path, query, headers = {} }: Route, referring: (schema: TSchema) => unknown): Json[] {
  const required = (query?.required ?? []) as readonly string[]
  return [
    ...[...path.matchAll(/:(\w+)/g)].map(([, name]) => ({
      name,
      in: 'path',
      required: true,
      schema: { type: 'string', minLength: 1 },
    })),
    ...Object.entries(query?.properties ?? {}).map(([name, schema]) => ({
      name,
      in: 'query',
      required: required.includes(name),
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
  referring: (schema: TSchema) => unknown,
): Json {
  const isProblem = schema === undefined && type === undefined && status >= 400
  const content = isProblem
    ? { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } }
    : schema !== undefined
      ? { 'application/json': { schema: referring(schema) } }
      : type !== undefined
        ? { [type]: { schema: { type: 'string' } } }
        : undefined
  return {
    description,
    ...(Object.keys(headers).length > 0 && {
      headers: Object.fromEntries(
        Object.entries(headers).map(([name, text]) => [name, { description: text, schema: { type: 'string' } }]),
      ),
    }),
    ...(content && { content }),
  }
}

/** A copy in which schemas with a title are references; what they refer to is added to `schemas`. */
function withReferences(schema: unknown, schemas: Record<string, unknown>): unknown {
  if (Array.isArray(schema)) return schema.map((item) => withReferences(item, schemas))
  if (typeof schema !== 'object' || schema === null) return schema
  const { title, ...rest } = schema as { title?: unknown }
  const copy = () =>
    Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, withReferences(value, schemas)]))
  if (typeof title !== 'string' || title === '') return copy()
  // Noted before its parts are looked at, so that the order is that of first mention.
  if (!Object.hasOwn(schemas, title)) {
    schemas[title] = undefined
    schemas[title] = copy()
  }
  return { $ref: `#/components/schemas/${title}` }
}
