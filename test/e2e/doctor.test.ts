/** `fluxgate doctor` with real servers. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { stopAfterTest } from '../fixtures/stop-after-test.js'
import { startRedis } from '../servers/redis-server.js'
import { tempWorkspace, type Workspace } from './running-program.js'

interface Report {
  readonly ok: boolean
  readonly findings: readonly { name: string; status: string; message: string; advice?: string }[]
}

const rules = { id: 'api', rules: [{ id: 'one', bands: [{ capacity: 1, window: '1m' }] }] }

async function doctor(workspace: Workspace, settings: object, env: NodeJS.ProcessEnv = {}) {
  workspace.write('rules.yaml', rules)
  workspace.write('fluxgate.yaml', { gateway: { port: 0 }, ...settings })
  const running = workspace.launch(['doctor', '--json'], env)
  const status = await running.ended
  const { ok, findings } = JSON.parse(running.stdout()) as Report
  const find = (name: string) => findings.find((one) => one.name === name)
  return { status, ok, find, output: `${running.stdout()}${running.stderr()}` }
}

describe('fluxgate doctor', () => {
  it('accepts an empty configuration', async () => {
    const { status, ok, find } = await doctor(tempWorkspace(), {})
    expect([status, ok]).toEqual([0, true])
    expect(find('rules')).toMatchObject({ status: 'ok', message: expect.stringContaining('1 rule set, 1 rule') })
    expect(find('reload')).toMatchObject({ message: 'changes are detected by WATCH' })
    expect(find('store')?.message).toContain('in memory')
    expect(find('server.adminToken')?.message).toBe('not set: the API is reachable from this machine only')
    expect(find('gateway.routes')).toMatchObject({
      status: 'warn',
      message:
        'no routes are configured; `fluxgate gateway` would not start, and the gateway of `fluxgate start` proxies to a built-in example',
      advice: 'Add them to fluxgate.yaml under gateway.routes.',
    })
  })

  it('finds ports that are in use, that two listeners share, or that everyone could reach', async () => {
    const holder = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => {
      holder.close()
    })
    await new Promise((resolve) => holder.once('listening', resolve))
    const { port } = holder.address() as AddressInfo
    const used = await doctor(tempWorkspace(), { server: { port: 0, grpcPort: port } })
    expect(used.status).toBe(1)
    expect(used.find('server.grpcPort')).toMatchObject({
      status: 'fail',
      message: `127.0.0.1:${port} is already in use`,
    })
    const shared = await doctor(
      tempWorkspace(),
      { gateway: { host: '0.0.0.0', port, metricsPort: port } },
      { FLUXGATE_SERVER_PORT: String(port) },
    )
    expect(shared.find('gateway.port')).toMatchObject({
      status: 'fail',
      message: `0.0.0.0:${port} is also server.port, and one process listens on both`,
    })
    expect(shared.find('gateway.metricsPort')).toMatchObject({
      status: 'fail',
      message: expect.stringContaining('is also gateway.port'),
    })
    const open = await doctor(tempWorkspace(), { server: { port: 0, grpcPort: port, grpcHost: '0.0.0.0' } })
    expect(open.find('server.grpcPort')).toMatchObject({
      status: 'fail',
      message: expect.stringContaining('cannot listen on 0.0.0.0 without a token'),
    })
  })

  it('checks Redis: version, role, scripts, clock, eviction, latency', async () => {
    const redis = await stopAfterTest(startRedis({ config: ['maxmemory 50mb', 'maxmemory-policy allkeys-lru'] }))
    const { status, find } = await doctor(tempWorkspace(), { store: { uri: redis.uri } })
    expect(status).toBe(0)
    expect(find('redis.version')?.message).toMatch(/^(Redis|Valkey) \d+\.\d+/)
    for (const name of ['redis.role', 'redis.tls', 'redis.scripts', 'redis.clock'])
      expect(find(name)?.status).toBe('ok')
    expect(find('redis.maxmemory-policy')).toMatchObject({
      status: 'warn',
      advice: 'Set maxmemory-policy noeviction and provide enough memory: an evicted bucket counts as full.',
    })
    expect(await redis.call('DBSIZE')).toBe(0)
  })

  it('reports a Redis that rejects the password, without printing it', async () => {
    const redis = await stopAfterTest(startRedis({ password: 'right' }))
    const uri = `redis://:planted-wrong@${redis.host}:${redis.port}`
    const { status, ok, find, output } = await doctor(tempWorkspace(), {}, { FLUXGATE_REDIS_URI: uri })
    expect([status, ok]).toEqual([1, false])
    expect(find('redis')).toMatchObject({ status: 'fail', advice: expect.any(String) })
    expect(output).not.toContain('planted-wrong')
  })

  it('reports a Redis user without permission to run scripts', async () => {
    const redis = await stopAfterTest(startRedis())
    await redis.call('ACL', 'SETUSER', 'app', 'on', '>pw', '~*', '&*', '+@all', '-eval', '-evalsha')
    const store = { uri: redis.uri, username: 'app', password: 'pw' }
    const { status, find } = await doctor(tempWorkspace(), { store })
    expect(status).toBe(1)
    expect(find('redis.scripts')).toMatchObject({
      status: 'fail',
      advice: 'Allow the ACL user to run EVAL and EVALSHA, and to write keys with this prefix.',
    })
  })

  it('reports a port in use, an unprotected API, invalid rules and an unreachable upstream', async () => {
    const holder = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => {
      holder.close()
    })
    await new Promise((resolve) => holder.once('listening', resolve))
    const { port } = holder.address() as AddressInfo
    const workspace = tempWorkspace()
    const routes = [{ id: 'shop', uri: 'http://127.0.0.1:1' }]
    workspace.write('wrong.yaml', '7')
    const { status, find } = await doctor(workspace, {
      gateway: { port, routes, metricsPort: port, metricsHost: '::' },
      server: { host: '0.0.0.0', port: 0 },
      rules: { path: 'wrong.yaml' },
    })
    expect(status).toBe(1)
    expect(find('gateway.port')).toMatchObject({ status: 'fail', message: `127.0.0.1:${port} is already in use` })
    expect(find('gateway.metricsPort')).toMatchObject({
      status: 'fail',
      message: 'metrics would be public on ::: no admin token is set',
    })
    expect(find('server.adminToken')).toMatchObject({
      status: 'fail',
      advice: expect.stringContaining('FLUXGATE_ADMIN_TOKEN'),
    })
    expect(find('rules')).toMatchObject({ status: 'fail', message: expect.stringContaining('wrong.yaml: 1 error') })
    expect(find('gateway.routes')).toMatchObject({ status: 'warn', message: expect.stringContaining('of route shop') })
  })

  const band = { capacity: 1, window: '1m' }
  const route = (filters: readonly string[] = []) => [{ id: 'shop', uri: 'http://127.0.0.1:1', filters }]

  it.each<[string, string, object, object, RegExp]>([
    [
      'a route with an unknown rule set',
      'gateway',
      { gateway: { port: 0, routes: route(['RateLimiter=shop']) } },
      rules,
      /gateway\.routes\[0\]\.filters\[0\]\.ruleSet: rule set "shop" does not exist in .*known rule sets: api \(line 1, column \d+\)/,
    ],
    [
      'several rule sets without a default',
      'gateway',
      { gateway: { port: 0, routes: route() } },
      [rules, { ...rules, id: 'web' }],
      /ratelimit\.defaultRuleSetId: rule set "default", which would limit route "shop", does not exist; known rule sets: api, web/,
    ],
    [
      'a rule set named like the limit of a route',
      'gateway',
      {
        gateway: { port: 0, routes: [{ ...route()[0], filters: [{ name: 'RateLimiter', args: { bands: [band] } }] }] },
      },
      { ...rules, id: 'route:shop' },
      /rule set ID "route:shop" is reserved/,
    ],
    [
      'an unknown key resolver',
      'serve',
      {},
      { id: 'api', rules: [{ id: 'one', limitScope: 'CUSTOM', keyResolver: 'tenant', bands: [band] }] },
      /tenant/,
    ],
    ['an unknown path in the rules', 'serve', { rules: { path: 'nowhere.yaml' } }, rules, /nowhere\.yaml/],
  ])('rejects %s with the message of the command that would fail', async (_, command, settings, ruleSets, message) => {
    const workspace = tempWorkspace()
    workspace.write('rules.yaml', ruleSets)
    workspace.write('fluxgate.yaml', settings)
    const only = command === 'serve' ? 'server' : 'gateway'
    const checked = workspace.launch(['doctor', '--json', '--only', only], { FLUXGATE_SERVER_PORT: '0' })
    const started = workspace.launch([command, '--port', '0'])
    expect([await checked.ended, await started.ended]).toEqual([1, 2])
    const { findings } = JSON.parse(checked.stdout()) as Report
    const failed = findings.filter(({ status }) => status === 'fail')
    expect(failed.map(({ message }) => message)).toEqual([expect.stringMatching(message)])
    expect(started.stderr()).toMatch(message)
  })

  it('warns of what the commands warn of, and of an access log that cannot be written', async () => {
    const workspace = tempWorkspace()
    const perUser = { id: 'api', rules: [{ id: 'one', limitScope: 'USER_ID', bands: [band] }] }
    workspace.write('users.yaml', perUser)
    const { status, find } = await doctor(workspace, {
      gateway: { port: 0, routes: route(), accessLog: 'nowhere/access.log' },
      ratelimit: { defaultRuleSetId: 'api' },
      rules: { path: 'users.yaml' },
    })
    expect(status).toBe(1)
    expect(find('gateway')).toMatchObject({ status: 'warn', message: expect.stringContaining('counts by USER_ID') })
    expect(find('gateway.accessLog')).toMatchObject({ status: 'fail', message: expect.stringContaining('nowhere') })
  })

  it('fails without rules for a server or routes for a gateway', async () => {
    const workspace = tempWorkspace()
    const ask = async (...args: string[]) => {
      const running = workspace.launch(['doctor', '--json', ...args], { FLUXGATE_GATEWAY_PORT: '0' })
      const status = await running.ended
      const { findings } = JSON.parse(running.stdout()) as Report
      return [
        status,
        ...findings.filter(({ status }) => status !== 'ok').map(({ name, status }) => `${name} ${status}`),
      ]
    }
    expect(await ask()).toEqual([1, 'rules fail', 'gateway.routes warn'])
    expect(await ask('--only', 'server')).toEqual([1, 'rules fail'])
    expect(await ask('--only', 'gateway')).toEqual([1, 'rules warn', 'gateway.routes fail'])
    workspace.write('fluxgate.yaml', { gateway: { routes: [{ id: 'shop', uri: 'http://127.0.0.1:1' }] } })
    expect(await ask()).toEqual([0, 'rules warn', 'gateway.routes warn'])
    expect(await ask('--only', 'gateway')).toEqual([0, 'rules warn', 'gateway.routes warn'])
  })

  it('exits with 2 for an invalid configuration, and prints readable lines', async () => {
    const workspace = tempWorkspace()
    workspace.write('fluxgate.yaml', { sever: {} })
    const misspelled = workspace.launch(['doctor'])
    expect(await misspelled.ended).toBe(2)
    expect(misspelled.stderr()).toContain('sever: unknown key; did you mean server?')
    workspace.write('rules.yaml', rules)
    workspace.write('fluxgate.yaml', { gateway: { port: 0 }, server: { adminToken: 'short' } })
    const plain = workspace.launch(['doctor'])
    expect(await plain.ended).toBe(0)
    expect(plain.stdout()).toMatch(/^✓ node: v\d+/)
    expect(plain.stdout()).toContain(
      '! server.adminToken: the token is short enough to guess\n    Generate one: openssl rand -base64 32\n',
    )
  })
})
