import { describe, expect, it, onTestFinished } from 'vitest'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { createServer } from '../../../src/program/create-server.js'
import { apiRoutes } from '../../../src/server/api-routes.js'
import { raw } from '../../fixtures/test-gateway.js'
import { serverWith, someRules } from '../../fixtures/test-server.js'

const check = '/api/ratelimit/check'
const adminToken = 'admin-token-of-this-test'
const checkToken = 'check-token-of-this-test'
const bearer = (token: string) => ({ Authorization: `Bearer ${token}` })

const publicPaths = ['/', '/health/live', '/health/ready', '/openapi.json', '/console/', '/console/x']
const checkPaths = [
  check,
  `${check}/batch`,
  ...['refund', 'release', 'renew', 'reserve', 'settle', 'cancel'].map((name) => `/api/ratelimit/${name}`),
]

/** The URL of every route, with sample values for its parameters. */
const allRoutes = apiRoutes({ gate: {} } as never, {} as never).map(({ method, path, access }) => ({
  method,
  path: path.replaceAll(/:\w+\*?/g, 'x'),
  access,
}))

describe('with an admin token', () => {
  it('every route requires it, except probes, the OpenAPI document and the files of the console', () => {
    expect(
      allRoutes
        .filter(({ access }) => access === 'PUBLIC')
        .map(({ path }) => path)
        .sort(),
    ).toEqual([...publicPaths].sort())
    expect(allRoutes.filter(({ access }) => access === 'CHECK').map(({ path }) => path)).toEqual(checkPaths)
  })

  it.each(allRoutes.filter(({ access }) => access !== 'PUBLIC'))(
    '$method $path is 401 without it',
    async ({ method, path, access }) => {
      const { ask } = await serverWith({ adminToken, checkToken })
      const body = method === 'GET' || method === 'DELETE' ? undefined : {}
      const wrong = [
        {},
        bearer('wrong'),
        bearer(adminToken.slice(0, -1)),
        bearer(`${adminToken}x`),
        bearer(adminToken.toUpperCase()),
      ]
      const others = [
        { Authorization: adminToken },
        { Authorization: `Token ${adminToken}` },
        { Authorization: 'Bearer ' },
      ]
      if (access === 'ADMIN') wrong.push(bearer(checkToken))
      for (const headers of [...wrong, ...others] as Record<string, string>[]) {
        const answer = await ask(method, path, body, headers)
        expect(answer).toMatchObject({ status: 401, body: { code: 'FLUXGATE_UNAUTHORIZED' } })
        expect(answer.headers.get('www-authenticate')).toBe('Bearer realm="FluxGate"')
        expect(answer.text).not.toContain(adminToken.slice(0, 8))
      }
    },
  )

  it('it opens every route, and the check token opens decisions only', async () => {
    const { ask } = await serverWith({ adminToken, checkToken })
    for (const token of [adminToken, checkToken]) expect((await ask('POST', check, {}, bearer(token))).status).toBe(200)
    expect((await ask('GET', '/info', undefined, bearer(adminToken))).status).toBe(200)
    expect((await ask('GET', '/info', undefined, { Authorization: `bearer   ${adminToken}` })).status).toBe(200)
  })

  it('decisions require the admin token if there is no check token', async () => {
    const { ask } = await serverWith({ adminToken })
    expect((await ask('POST', check, {})).status).toBe(401)
    expect((await ask('POST', check, {}, bearer(adminToken))).status).toBe(200)
  })

  it('the console asks for it on its own page, without the password prompt of the browser', async () => {
    const { ask } = await serverWith({ adminToken })
    const page = await ask('GET', '/console', undefined, { Accept: 'text/html,*/*' })
    expect(page.status).toBe(401)
    expect(page.headers.get('www-authenticate')).toBe('Bearer realm="FluxGate"')
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'; script-src 'self'")
    expect(page.text).toContain('<div id="app">')
    expect(await ask('GET', '/console')).toMatchObject({ status: 401, body: { code: 'FLUXGATE_UNAUTHORIZED' } })
    expect((await ask('GET', '/console', undefined, bearer(adminToken))).text).toBe(page.text)
  })

  it('browsers are asked for it as a password, and other sites cannot use the stored password', async () => {
    const { ask, port } = await serverWith({ adminToken })
    const asked = await ask('GET', '/metrics', undefined, { Accept: 'text/html,*/*' })
    expect(asked.status).toBe(401)
    expect(asked.headers.get('www-authenticate')).toContain('Basic realm="FluxGate"')
    const basic = { Authorization: `Basic ${Buffer.from(`ann:${adminToken}`).toString('base64')}` }
    expect((await ask('GET', '/console', undefined, basic)).status).toBe(200)
    expect((await ask('POST', '/api/reload', undefined, basic)).status).toBe(200)
    const foreign = { ...basic, Origin: 'https://evil.example' }
    expect(await ask('POST', '/api/reload', undefined, foreign)).toMatchObject({
      status: 403,
      body: { code: 'FLUXGATE_ORIGIN_FORBIDDEN' },
    })
    expect((await ask('POST', '/api/reload', undefined, { ...basic, Origin: `http://127.0.0.1:${port}` })).status).toBe(
      200,
    )
    expect(
      (await ask('POST', '/api/reload', undefined, { ...bearer(adminToken), Origin: 'https://evil.example' })).status,
    ).toBe(200)
  })

  it('it is accepted with any user name', async () => {
    const { port } = await serverWith({ adminToken })
    const received = await raw(
      port,
      'GET /health/live HTTP/1.1\r\nHost: limits.example.org\r\nConnection: close\r\n\r\n',
    )
    expect(received).toMatch(/^HTTP\/1\.1 200 /)
  })
})

describe('without an admin token', () => {
  it.each(['0.0.0.0', '::', '10.0.0.1', 'example.org', '128.0.0.1', 'localhost.example.org', ''])(
    'refuses to listen on %j, and states what to do',
    async (host) => {
      const gate = await createFluxGate({ rules: someRules })
      onTestFinished(() => gate.close())
      const server = createServer({ gate, adminToken: '' })
      await expect(server.listen({ host, port: 0 })).rejects.toMatchObject({
        code: 'FLUXGATE_CONFIG_INVALID',
        message: `The server cannot listen on ${host} without an admin token, because anyone could access it. Set server.adminToken (or FLUXGATE_ADMIN_TOKEN), or listen on 127.0.0.1.`,
        errors: [{ path: 'server.host' }],
      })
    },
  )

  it.each(['127.0.0.1', '127.0.0.2', 'localhost'])('listens on %s', async (host) => {
    const gate = await createFluxGate({ rules: someRules })
    const server = createServer({ gate })
    onTestFinished(async () => {
      await server.close(0)
      await gate.close()
    })
    const { url } = await server.listen({ host, port: 0 })
    expect((await fetch(`${url}/health/live`)).status).toBe(200)
  })

  it.each([
    ['localhost', 200],
    ['localhost:8090', 200],
    ['api.localhost', 200],
    ['127.0.0.1:1', 200],
    ['[::1]:8090', 200],
    ['evil.example', 403],
    ['localhost.evil.example', 403],
    ['127.0.0.1.evil.example', 403],
    ['evil.example:8090', 403],
  ])('a page that uses the host name %s for this machine gets %i', async (host, status) => {
    const { port } = await serverWith()
    const received = await raw(port, `GET /api/rule-sets HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
    expect(Number(received.slice(9, 12)) === 403).toBe(status === 403)
  })

  it('changes from pages of other sites are rejected', async () => {
    const { ask } = await serverWith()
    for (const Origin of ['https://evil.example', 'http://localhost:1', 'null'])
      expect((await ask('POST', '/api/reload', undefined, { Origin })).status).toBe(403)
  })

  it('a check token is required nevertheless', async () => {
    const { ask } = await serverWith({ checkToken })
    expect((await ask('POST', check, {})).status).toBe(401)
    expect((await ask('POST', check, {}, bearer(checkToken))).status).toBe(200)
    expect((await ask('GET', '/info')).status).toBe(200)
  })
})

it('a token that no header can carry is a configuration error', async () => {
  const gate = await createFluxGate({ rules: someRules })
  onTestFinished(() => gate.close())
  for (const token of ['two words', 'naïve', 'line\n'])
    expect(() => createServer({ gate, adminToken: token })).toThrow(
      'server.adminToken: must be printable ASCII without spaces',
    )
})
