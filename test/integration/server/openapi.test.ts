import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { finish } from '../../../src/core/scheduling/steps.js'
import { bandKinds } from '../../../src/rules/schema/fields/band-schema.js'
import { checkRuleSets, ruleSetKinds } from '../../../src/rules/schema/parse-rules.js'
import { ruleKinds } from '../../../src/rules/schema/rule-schema.js'
import { apiRoutes } from '../../../src/server/api-routes.js'
import { openApiOf } from '../../../src/server/openapi/openapi.js'
import type { Route } from '../../../src/server/request/route.js'
import { canonicalSet } from '../../../src/server/routes/canonical-rule.js'
import { type Told, wholeServer } from '../../fixtures/test-server.js'

// biome-ignore lint/suspicious/noExplicitAny: a document that is walked through
type Document = any

const run = promisify(execFile)
const routes: readonly Route[] = apiRoutes({ gate: {}, version: '0.0.0' } as never, {} as never)
const pathOf = ({ path }: Route): string => path.replaceAll(/:(\w+)\*?/g, '{$1}')
let document: Document

beforeAll(() => {
  document = JSON.parse(JSON.stringify(openApiOf(routes, '0.0.0', { admin: true, check: false })))
})

const ajv = new Ajv2020({
  strict: false,
  allErrors: true,
  formats: { 'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/, 'uri-reference': true },
})
const validators = new Map<string, ReturnType<Ajv2020['compile']>>()

function validatorOf(schema: object) {
  const text = JSON.stringify(schema)
  const known = validators.get(text) ?? ajv.compile({ ...schema, components: document.components })
  validators.set(text, known)
  return known
}

/** The schema of a response; undefined for one without a body. */
function answerSchema(operation: Document, { status, headers }: Pick<Told, 'status' | 'headers'>) {
  const found = operation.responses[status] ?? operation.responses.default
  const response = found.$ref === undefined ? found : document.components.responses.Problem
  const type = headers.get('content-type')?.split(';')[0]
  if (response.content === undefined) expect(type).toBeUndefined()
  else expect(Object.keys(response.content)).toContain(type)
  return type?.endsWith('json') ? response.content[type].schema : undefined
}

/** The names of scripts contain a digest of their content. */
const consoleScript = readdirSync('dist/console/assets').find((name) => name.endsWith('.js'))

function expectAsDescribed(operation: Document, answer: Told): void {
  const schema = answerSchema(operation, answer)
  if (schema === undefined || answer.text === '') return
  const validate = validatorOf(schema)
  expect(validate(answer.body) ? [] : validate.errors, answer.text).toEqual([])
}

describe('/openapi.json', () => {
  it('is valid OpenAPI 3.1', async () => {
    const { valid, errors } = await new Validator().validate(structuredClone(document))
    expect(errors).toBeUndefined()
    expect(valid).toBe(true)
    expect(document.openapi).toBe('3.1.0')
  })

  it('is served as generated from the routes', async () => {
    const { ask } = await wholeServer({ adminToken: 'secret' })
    const { status, body } = await ask('GET', '/openapi.json')
    expect(status).toBe(200)
    const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
    expect(body).toEqual({ ...document, info: { ...document.info, version } })
  })

  it('has every route except the redirect of a trailing slash, and nothing else', () => {
    const described = Object.entries<Document>(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    )
    const paths = routes.map((route) => `${route.method} ${pathOf(route)}`)
    expect(described.sort()).toEqual(paths.filter((path) => path !== 'GET /console/').sort())
    const names = routes.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
  })

  it('describes every tag', () => {
    expect(document.tags.filter(({ description = '' }) => description === '')).toEqual([])
  })

  it('has every route of the contract', () => {
    const contract = `POST /api/ratelimit/check
POST /api/ratelimit/check/batch
POST /api/ratelimit/refund
POST /api/ratelimit/release
POST /api/ratelimit/renew
POST /api/ratelimit/reserve
POST /api/ratelimit/settle
POST /api/ratelimit/cancel
POST /api/ratelimit/explain
GET /api/rule-sets
GET PUT DELETE /api/rule-sets/{id}
GET POST /api/rule-sets/{id}/rules
GET PUT PATCH DELETE /api/rule-sets/{id}/rules/{ruleId}
GET POST /api/rule-sets/{id}/rules/{ruleId}/overrides
GET PUT DELETE /api/rule-sets/{id}/rules/{ruleId}/overrides/{key}
GET POST /api/rule-sets/{id}/rules/{ruleId}/bans
GET PUT DELETE /api/rule-sets/{id}/rules/{ruleId}/bans/{key}
GET PUT DELETE /api/rule-sets/{id}/candidate
GET /api/rule-sets/{id}/candidate/report
POST /api/rule-sets/{id}/candidate/promote
POST /api/rules/validate
POST /api/reload
GET DELETE /api/buckets
GET /api/stats
GET /api/stats/top
GET /api/keys
GET /api/decisions/recent
GET /api/events
GET /health/live
GET /health/ready
GET /metrics
GET /info
GET /console`
    for (const line of contract.split('\n')) {
      const [path = '', ...methods] = line.split(' ').reverse()
      for (const method of methods) expect(document.paths[path], line).toHaveProperty(method.toLowerCase())
    }
  })

  it('describes every field of rule sets, rules and bands', () => {
    const { RuleSet, Rule, Band } = document.components.schemas
    expect(Object.keys(RuleSet.properties).sort()).toEqual(Object.keys(ruleSetKinds).sort())
    expect(Object.keys(Rule.properties).sort()).toEqual(Object.keys(ruleKinds).sort())
    expect(Object.keys(Band.properties).sort()).toEqual(Object.keys(bandKinds).sort())
  })

  it('describes rules so that every accepted rule is valid, with algorithms spelled as in responses', () => {
    const validate = validatorOf({ $ref: '#/components/schemas/RuleSetToPut' })
    const files = ['rules.yaml', 'README.md', 'docs/reference/rules.md']
    const documents = files.flatMap((file) => {
      const text = readFileSync(file, 'utf8')
      const blocks = file.endsWith('.md')
        ? [...text.matchAll(/^```yaml[^\n]*\n([\s\S]*?)^```$/gm)].map(([, block]) => block)
        : [text]
      return blocks.map((block) => parse(block ?? '')).filter((found) => checkRuleSets(found).ruleSets.length > 0)
    })
    const sets = documents.flatMap((found) => found.ruleSets ?? found).map((set) => finish(canonicalSet(set)))
    expect(sets.length).toBeGreaterThan(2)
    for (const set of sets) expect(validate(set) ? [] : validate.errors, JSON.stringify(set)).toEqual([])
  })
})

/** Every schema in a part of the document, with its path. References are followed once. */
function* schemasIn(
  part: Document,
  place = '',
  seen = new Set<string>(),
): Generator<[place: string, schema: Document]> {
  if (typeof part !== 'object' || part === null) return
  if (part.$ref?.startsWith('#/components/schemas/')) {
    const name = part.$ref.split('/').at(-1)
    if (seen.has(name)) return
    seen.add(name)
    yield* schemasIn(document.components.schemas[name], name, seen)
    return
  }
  if ('type' in part || 'enum' in part || 'const' in part || 'anyOf' in part || 'properties' in part)
    yield [place, part]
  for (const [name, member] of Object.entries(part)) yield* schemasIn(member, `${place}.${name}`, seen)
}

const operationsOf = (): readonly Document[] =>
  Object.values<Document>(document.paths).flatMap((methods) => Object.values<Document>(methods))

describe('for client generators', () => {
  it('lists every required member of every schema in its properties', () => {
    for (const [name, { properties, required = [] }] of Object.entries<Document>(document.components.schemas))
      for (const member of required) expect(properties, name).toHaveProperty(member)
    const { properties, required } = document.components.schemas.Problem
    expect(required).toEqual(['type', 'title', 'status', 'detail', 'code'])
    expect(Object.keys(properties)).toEqual([...required, 'errors'])
  })

  it('has no default in a request: generated clients would require the member', () => {
    for (const { operationId, parameters = [], requestBody } of operationsOf())
      for (const [place, schema] of schemasIn([parameters, requestBody?.content]))
        expect(schema, `${operationId} ${place}`).not.toHaveProperty('default')
  })

  it('has enumerations as enum with a type', () => {
    for (const [place, schema] of schemasIn([document.components.schemas, document.paths])) {
      expect(schema, place).not.toHaveProperty('const')
      if (schema.enum !== undefined) expect(schema.type, place).toBe('string')
    }
    const { Decision, Rule, Band, RuleSet, Override, Change } = document.components.schemas
    const places = [Decision, Decision, Rule, Rule, Band, RuleSet, Override, Change]
    const names = ['reason', 'policy', 'limitScope', 'algorithm', 'algorithm', 'strategy', 'action', 'action']
    for (const [i, name] of names.entries()) expect(places[i].properties[name], name).toHaveProperty('enum')
  })

  it('declares date-time for instants, and a minimum for every number', () => {
    for (const [place, schema] of schemasIn([document.components.schemas, document.paths])) {
      const name = place.split('.').at(-1) ?? ''
      const types = [schema.type].flat()
      if (types.includes('string') && ['at', 'createdAt', 'updatedAt', 'expiresAt', 'balanceAt'].includes(name))
        expect(schema.format, place).toBe('date-time')
      // A condition compares a number with text, whatever the number is.
      const isNumber = types.includes('integer') || (types.includes('number') && !types.includes('boolean'))
      if (isNumber) expect(schema.minimum ?? schema.exclusiveMinimum, place).toBeTypeOf('number')
    }
  })

  it('declares If-None-Match where it applies, and describes its values', () => {
    const taking = operationsOf().filter(({ parameters = [] }) =>
      parameters.some(
        ({ name, description }: Document) => name === 'If-None-Match' && /weak.*`\*`|`\*`.*weak/.test(description),
      ),
    )
    expect(taking.map(({ operationId }) => operationId).sort()).toEqual(
      ['deleteRule', 'deleteRuleSet', 'getRule', 'getRuleSet', 'patchRule', 'putRule', 'putRuleSet'].sort(),
    )
  })
})

describe('security', () => {
  const tokens = { adminToken: 'open-sesame', checkToken: 'check-sesame' }
  it.each([{}, { adminToken: tokens.adminToken }, { checkToken: tokens.checkToken }, tokens])(
    'is what a server with %j enforces on every route',
    async (given) => {
      const { ask, url } = await wholeServer(given)
      const { body: found } = await ask('GET', '/openapi.json')
      const schemes = Object.keys(found.components.securitySchemes ?? {})
      expect(schemes).toEqual(Object.keys(given))
      const statusOf = async (method: string, path: string, token?: string): Promise<number> => {
        const headers = { 'Content-Type': 'application/json', ...(token && { Authorization: `Bearer ${token}` }) }
        const response = await fetch(`${url}${path.replaceAll(/\{\w+\}/g, 'nobody')}`, {
          method,
          headers,
          redirect: 'manual',
        })
        // The events never end.
        await response.body?.cancel()
        return response.status
      }
      for (const [path, methods] of Object.entries<Document>(found.paths))
        for (const [method, { security }] of Object.entries<Document>(methods)) {
          const name = `${method.toUpperCase()} ${path}`
          const asks = (await statusOf(method.toUpperCase(), path)) === 401
          expect(asks, name).toBe(security.length > 0)
          for (const requirement of security)
            for (const scheme of Object.keys(requirement))
              expect(await statusOf(method.toUpperCase(), path, tokens[scheme as keyof typeof tokens]), name).not.toBe(
                401,
              )
        }
    },
  )
})

describe('every response matches its description', () => {
  const band = { label: 'minute', capacity: 10, window: '1m' }
  const shop = '/api/rule-sets/shop'
  const overrides = `${shop}/rules/per-address/overrides`
  const bans = `${shop}/rules/banning/bans`
  const banning = { ban: { after: 5, within: '1m', for: '15m', factor: 2 }, bands: [band] }
  const who = { clientIp: '203.0.113.7', path: '/shop/cart', ruleSetId: 'shop' }
  const unknownHold = `s${'0'.repeat(16)}.${Buffer.from('["shop",60000,"per-address","a"]').toString('base64url')}`
  const bucket = '/api/buckets?ruleSetId=shop&ruleId=per-address'
  /** By operation: the request and its expected status. */
  const asked: readonly (readonly [name: string, status: number, method: string, path: string, body?: unknown])[] = [
    ['check', 200, 'POST', '/api/ratelimit/check', who],
    ['check', 200, 'POST', '/api/ratelimit/check', { ruleSetId: 'nobody' }],
    ['check', 400, 'POST', '/api/ratelimit/check', { permits: -1 }],
    ['checkBatch', 200, 'POST', '/api/ratelimit/check/batch', { checks: [who, { ...who, permits: 100 }] }],
    ['refund', 200, 'POST', '/api/ratelimit/refund', who],
    ['releaseHold', 200, 'POST', '/api/ratelimit/release', { holdId: unknownHold }],
    ['releaseHold', 400, 'POST', '/api/ratelimit/release', { holdId: 'x' }],
    ['renewHold', 200, 'POST', '/api/ratelimit/renew', { holdId: unknownHold }],
    ['reserve', 200, 'POST', '/api/ratelimit/reserve', { ...who, ttlMs: 60_000, id: 'job' }],
    ['reserve', 400, 'POST', '/api/ratelimit/reserve', who],
    ['settle', 200, 'POST', '/api/ratelimit/settle', { id: 'job', permits: 0 }],
    ['settle', 404, 'POST', '/api/ratelimit/settle', { id: 'none' }],
    ['cancel', 200, 'POST', '/api/ratelimit/cancel', { id: 'job' }],
    ['cancel', 400, 'POST', '/api/ratelimit/cancel', {}],
    ['explain', 200, 'POST', '/api/ratelimit/explain', who],
    ['explain', 200, 'POST', '/api/ratelimit/explain', { ruleSetId: 'nobody' }],
    ['explain', 400, 'POST', '/api/ratelimit/explain', { limit: -1 }],
    [
      'explainRejection',
      200,
      'POST',
      '/api/ratelimit/explain/rejection',
      { ratelimit: '"per-address.minute";r=0;t=9' },
    ],
    ['explainRejection', 400, 'POST', '/api/ratelimit/explain/rejection', {}],
    ['listRuleSets', 200, 'GET', '/api/rule-sets?limit=1'],
    ['getRuleSet', 200, 'GET', shop],
    ['getRuleSet', 404, 'GET', '/api/rule-sets/nobody'],
    ['putRuleSet', 201, 'PUT', '/api/rule-sets/new', { rules: [{ id: 'a', bands: [band] }] }],
    ['putRuleSet', 200, 'PUT', '/api/rule-sets/new', { rules: [] }],
    ['putRuleSet', 400, 'PUT', '/api/rule-sets/new', { rules: [{ id: '' }] }],
    ['deleteRuleSet', 204, 'DELETE', '/api/rule-sets/new'],
    ['ruleSetHistory', 200, 'GET', '/api/rule-sets/new/history'],
    ['putCandidate', 201, 'PUT', `${shop}/candidate`, { rules: [{ id: 'per-address', bands: [band] }] }],
    ['putCandidate', 400, 'PUT', `${shop}/candidate`, { rules: [{ id: '' }] }],
    ['listCandidates', 200, 'GET', '/api/candidates'],
    ['getCandidate', 200, 'GET', `${shop}/candidate`],
    ['candidateReport', 200, 'GET', `${shop}/candidate/report`],
    ['dropCandidate', 204, 'DELETE', `${shop}/candidate`],
    ['promoteCandidate', 404, 'POST', `${shop}/candidate/promote`],
    [
      'putCandidate',
      201,
      'PUT',
      `${shop}/candidate`,
      { rules: [{ id: 'per-address', overrides: true, bands: [band] }] },
    ],
    ['promoteCandidate', 200, 'POST', `${shop}/candidate/promote`],
    ['listRules', 200, 'GET', `${shop}/rules?q=ADDRESS&enabled=true`],
    ['createRule', 201, 'POST', `${shop}/rules`, { id: 'a', bands: [band] }],
    ['createRule', 409, 'POST', `${shop}/rules`, { id: 'a', bands: [band] }],
    ['getRule', 200, 'GET', `${shop}/rules/a`],
    ['putRule', 200, 'PUT', `${shop}/rules/a`, { name: 'x', bands: [band] }],
    ['putRule', 201, 'PUT', `${shop}/rules/b`, { bands: [band] }],
    ['patchRule', 200, 'PATCH', `${shop}/rules/a`, { enabled: false }],
    ['deleteRule', 204, 'DELETE', `${shop}/rules/a`],
    ['validateRules', 200, 'POST', '/api/rules/validate', { ruleSets: [{ id: 7 }] }],
    ['reload', 200, 'POST', '/api/reload', { ruleSetId: 'shop' }],
    ['createOverride', 201, 'POST', overrides, { key: '10.0.0.0/8', action: 'DENY' }],
    ['createOverride', 409, 'POST', overrides, { key: '10.0.0.0/8', action: 'DENY' }],
    ['createOverride', 400, 'POST', overrides, { key: '11.0.0.0/8', action: 'MAYBE' }],
    ['putOverride', 200, 'PUT', `${overrides}/10.0.0.0%2F8`, { action: 'LIMIT', bands: [band], note: 'n' }],
    ['putOverride', 201, 'PUT', `${overrides}/192.0.2.1`, { action: 'ALLOW', expiresAt: '2099-01-01T00:00:00Z' }],
    ['getOverride', 200, 'GET', `${overrides}/10.0.0.0/8`],
    ['listOverrides', 200, 'GET', `${overrides}?prefix=10.&limit=1`],
    ['listOverrides', 200, 'GET', `${overrides}?key=10.1.2.3`],
    ['deleteOverride', 204, 'DELETE', `${overrides}/10.0.0.0/8`],
    ['putRule', 201, 'PUT', `${shop}/rules/banning`, banning],
    ['createBan', 201, 'POST', bans, { key: '192.0.2.1', for: '1h' }],
    ['createBan', 409, 'POST', bans, { key: '192.0.2.1' }],
    ['createBan', 400, 'POST', bans, { key: '192.0.2.2', for: '2d' }],
    ['putBan', 200, 'PUT', `${bans}/192.0.2.1`, { for: 60 }],
    ['putBan', 201, 'PUT', `${bans}/192.0.2.3`, {}],
    ['getBan', 200, 'GET', `${bans}/192.0.2.1`],
    ['getBan', 404, 'GET', `${bans}/192.0.2.9`],
    ['listBans', 200, 'GET', `${bans}?prefix=192.&limit=1`],
    ['liftBan', 204, 'DELETE', `${bans}/192.0.2.1`],
    ['getBucket', 200, 'GET', `${bucket}&key=203.0.113.7`],
    ['getBucket', 404, 'GET', '/api/buckets?ruleSetId=shop&ruleId=nobody&key=x'],
    ['getBucket', 400, 'GET', bucket],
    ['resetBucket', 204, 'DELETE', `${bucket}&key=203.0.113.7`],
    ['resetBucket', 204, 'DELETE', bucket],
    ['statistics', 200, 'GET', '/api/stats'],
    ['series', 200, 'GET', '/api/stats/series?resolution=1m&ruleSetId=shop&ruleId=per-address&since=0'],
    ['series', 400, 'GET', '/api/stats/series?ruleId=per-address'],
    ['topKeys', 200, 'GET', '/api/stats/top?by=requests'],
    ['findKeys', 200, 'GET', '/api/keys?prefix=203'],
    ['recentDecisions', 200, 'GET', '/api/decisions/recent?limit=5'],
    ['live', 200, 'GET', '/health/live'],
    ['ready', 200, 'GET', '/health/ready'],
    ['metrics', 200, 'GET', '/metrics'],
    ['info', 200, 'GET', '/info'],
    ['console', 200, 'GET', '/console'],
    ['consoleFile', 200, 'GET', `/console/assets/${consoleScript}`],
    ['consoleFile', 404, 'GET', '/console/nothing.js'],
    ['openApi', 200, 'GET', '/openapi.json'],
  ]

  it('for every operation', async () => {
    const { ask } = await wholeServer()
    const operations = Object.values<Document>(document.paths).flatMap((methods) => Object.values<Document>(methods))
    for (const [name, status, method, path, body] of asked) {
      const answer = await ask(method, path, body)
      expect(`${name} ${answer.status}`, answer.text).toBe(`${name} ${status}`)
      const operation = operations.find(({ operationId }) => operationId === name)
      expectAsDescribed(operation, answer)
    }
    // Streams and redirects are tested elsewhere.
    const seen = new Set([...asked.map(([name]) => name), 'events', 'home'])
    expect(operations.map(({ operationId }) => operationId).filter((name) => !seen.has(name))).toEqual([])
  })
})

describe('a client generated from the document', () => {
  /** The minimal value that a schema allows. */
  function least(schema: Document): unknown {
    if (schema.$ref !== undefined)
      return least(
        schema.$ref
          .split('/')
          .slice(1)
          .reduce((at: Document, step: string) => at[step], document),
      )
    if (schema.enum !== undefined) return schema.enum[0]
    const type = Array.isArray(schema.type) ? schema.type[0] : schema.type
    if (type === 'array') return Array.from({ length: schema.minItems ?? 0 }, () => least(schema.items))
    if (type === 'integer' || type === 'number') return schema.minimum ?? 1
    if (type === 'boolean') return true
    if (type === 'string') return 'a'
    const required: readonly string[] = schema.required ?? []
    return Object.fromEntries(required.map((name) => [name, least(schema.properties[name])]))
  }

  it('calls every operation with curl and gets a documented response', async () => {
    const { url } = await wholeServer({ adminToken: 'open-sesame' })
    const curl = async (args: readonly string[]) => {
      const { stdout } = await run('curl', ['-s', '-S', '-i', '--max-time', '20', ...args])
      const [head = '', ...rest] = stdout.split('\r\n\r\n')
      const headers = new Headers(
        head
          .split('\r\n')
          .slice(1)
          .map((line) => line.split(/: ?(.*)/s).slice(0, 2) as [string, string]),
      )
      const text = rest.join('\r\n\r\n')
      const isJson = /json/.test(headers.get('content-type') ?? '') && text !== ''
      return { status: Number(head.split(' ')[1]), headers, text, body: isJson ? JSON.parse(text) : undefined }
    }
    const { body: found } = await curl([`${url}/openapi.json`])
    const statuses: string[] = []
    for (const [path, methods] of Object.entries<Document>(found.paths))
      for (const [method, operation] of Object.entries<Document>(methods)) {
        if (operation.operationId === 'events') continue
        const parameters: readonly Document[] = operation.parameters ?? []
        const query = parameters
          .filter((parameter) => parameter.in === 'query' && parameter.required)
          .map(({ name, schema }) => `${name}=${least(schema)}`)
        const target = `${url}${path.replaceAll(/\{\w+\}/g, 'shop')}${query.length > 0 ? `?${query.join('&')}` : ''}`
        const args = ['-X', method.toUpperCase(), target]
        if (operation.security.length > 0) args.push('-H', 'Authorization: Bearer open-sesame')
        const [type, content] = Object.entries<Document>(operation.requestBody?.content ?? {})[0] ?? []
        if (type !== undefined) args.push('-H', `Content-Type: ${type}`, '-d', JSON.stringify(least(content.schema)))
        const answer = await curl(args)
        statuses.push(`${answer.status}`)
        expect(answer.status, `${method} ${path}: ${answer.text}`).toBeLessThan(500)
        expectAsDescribed(operation, answer)
      }
    expect(statuses.filter((status) => status.startsWith('2')).length).toBeGreaterThanOrEqual(20)
    expect(statuses).not.toContain('401')
  }, 120_000)
})
