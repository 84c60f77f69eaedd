/** Tests the types that openapi-typescript generates. clients.mjs compiles it in strict mode and runs it. */
import assert from 'node:assert/strict'
import createClient from 'openapi-fetch'
import type { components, paths } from './api.js'

const [url = '', token = ''] = process.argv.slice(2)
const api = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${token}` } })
const unauthenticated = createClient<paths>({ baseUrl: url })

// Fields with a default are optional.
const checked = await api.POST('/api/ratelimit/check', { body: { clientIp: '203.0.113.7', ruleSetId: 'shop' } })
const decision: components['schemas']['Decision'] | undefined = checked.data
assert.equal(decision?.allowed, true)
assert.equal(decision.reason satisfies 'ALLOWED' | string, 'ALLOWED')

const rule: components['schemas']['RuleToPut'] = { algorithm: 'FIXED_WINDOW', bands: [{ capacity: 3, window: '1m' }] }
const path = { id: 'shop', ruleId: 'typed' }
const created = await api.PUT('/api/rule-sets/{id}/rules/{ruleId}', { params: { path }, body: rule })
assert.equal(created.response.status, 201)
const etag = created.response.headers.get('ETag') ?? ''
const known = await api.GET('/api/rule-sets/{id}/rules/{ruleId}', {
  params: { path, header: { 'If-None-Match': `W/${etag}` } },
})
assert.equal(known.response.status, 304)
const patched = await api.PATCH('/api/rule-sets/{id}/rules/{ruleId}', {
  params: { path, header: { 'If-Match': etag } },
  body: { enabled: false },
})
assert.equal(patched.data?.enabled, false)
const lost = await api.DELETE('/api/rule-sets/{id}/rules/{ruleId}', {
  params: { path, header: { 'If-Match': etag } },
})
const problem: components['schemas']['Problem'] | undefined = lost.error
assert.equal(problem?.status, 412)
assert.equal(problem.title, 'Precondition Failed')
assert.equal(problem.code, 'FLUXGATE_RULES_CONFLICT')
assert.equal((await api.DELETE('/api/rule-sets/{id}/rules/{ruleId}', { params: { path } })).response.status, 204)
const missing = await api.DELETE('/api/rule-sets/{id}/rules/{ruleId}', { params: { path } })
assert.equal(missing.error?.code, 'FLUXGATE_NOT_FOUND')
assert.equal((await unauthenticated.GET('/api/rule-sets')).error?.code, 'FLUXGATE_UNAUTHORIZED')
console.log('The TypeScript client works.')
