/** `fluxgate serve` as processes: output, secrets, and several servers that share a Redis or MongoDB. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { request } from 'node:https'
import { describe, expect, it } from 'vitest'
import { parseOpenMetrics } from '../fixtures/open-metrics.js'
import { stopAfterTest } from '../fixtures/stop-after-test.js'
import { freePort } from '../servers/free-port.js'
import { mongoKind, openMongo } from '../servers/mongo-server.js'
import { startRedis } from '../servers/redis-server.js'
import { selfSigned } from '../servers/self-signed.js'
import { freshPrefix, sharedRedis } from '../servers/shared-redis.js'
import { type Running, tempWorkspace, type Workspace } from './running-program.js'

const args = ['serve', '--port', '0']
/** On a busy machine Redis may be slower than the default timeout of a decision. */
const longTimeout = { FLUXGATE_STORE_TIMEOUT_MS: '5000' }
const json = { 'Content-Type': 'application/json' }
const ruleSet = (capacity: number) => ({ id: 'api', rules: [{ id: 'per-ip', bands: [{ capacity, window: '1h' }] }] })

function withRules(capacity = 2): Workspace {
  const workspace = tempWorkspace()
  workspace.write('rules.yaml', ruleSet(capacity))
  return workspace
}

async function check({ api }: Running, clientIp = '192.0.2.1', headers: Record<string, string> = {}) {
  const body = JSON.stringify({ clientIp })
  const response = await fetch(`${api}/api/ratelimit/check`, { method: 'POST', headers: { ...json, ...headers }, body })
  return (await response.json()) as { allowed: boolean; remaining: number; degraded: boolean }
}

const documentOf = async (url: string, headers: Record<string, string> = {}) =>
  (await (await fetch(url, { headers })).json()) as Record<string, unknown>

describe('the server as a process', () => {
  it('prints its URL, its rules and an example request', async () => {
    const running = await withRules().start(args)
    expect(running.stdout()).toBe(
      `FluxGate API listens on ${running.api}\n` +
        `Console: ${running.api}/console. API description: ${running.api}/openapi.json\n` +
        'Rules: rules.yaml, 1 rule. Saved edits apply immediately.\n\nTry:\n' +
        `  curl -s -H "Content-Type: application/json" -d '{"clientIp":"203.0.113.7","method":"GET","path":"/"}' ${running.api}/api/ratelimit/check\n` +
        '      a decision as JSON\n' +
        `  curl -s ${running.api}/metrics\n      metrics for Prometheus\n\nPress Ctrl-C to stop.\n`,
    )
    expect(running.stderr()).toBe('')
    expect([await check(running), await check(running), await check(running)].map(({ allowed }) => allowed)).toEqual([
      true,
      true,
      false,
    ])
  })

  it('reloads rules when the file is edited, and on SIGHUP', async () => {
    const workspace = withRules(1)
    const running = await workspace.start(args)
    workspace.write('rules.yaml', ruleSet(5))
    await running.until('the edit is in effect', () => running.stdout().includes('rules.yaml reloaded: 1 rule active'))
    expect((await check(running)).remaining).toBe(4)
    running.process.kill('SIGHUP')
    await running.until('the rules are reloaded', () => running.stdout().includes('rules.yaml reloaded: no changes'))
  })

  it('shuts down on SIGTERM and exits with 0', async () => {
    const running = await withRules().start(args)
    running.process.kill('SIGTERM')
    expect(await running.ended).toBe(0)
    expect(running.stdout()).toContain('stopping')
  })

  it.each([
    ['no rules', {}, /^error: There is no rules file/],
    ['a token that is invalid in a header', { FLUXGATE_ADMIN_TOKEN: 'a b' }, /server\.adminToken|FLUXGATE_ADMIN_TOKEN/],
    ['half a certificate', { FLUXGATE_SERVER_TLS_CERT: 'x.pem' }, /server\.tls: key is missing/],
  ])('does not start with %s, and exits with 2', async (_, env, message) => {
    const running = tempWorkspace().launch(args, env)
    expect(await running.ended).toBe(2)
    expect(running.stderr()).toMatch(message)
  })

  it('does not listen before rules are loaded, so no probe finds it ready, and exits with 2', async () => {
    const port = await freePort()
    const running = tempWorkspace().launch(['serve', '--port', String(port)], {
      FLUXGATE_RULES_URI: 'redis://127.0.0.1:1',
    })
    let hasEnded = false
    void running.ended.then(() => {
      hasEnded = true
    })
    const statuses: number[] = []
    await running.until('it has ended', async () => {
      const answer = await fetch(`http://127.0.0.1:${port}/health/ready`).catch(() => undefined)
      if (answer !== undefined) statuses.push(answer.status)
      return hasEnded
    })
    expect(statuses).toEqual([])
    expect(await running.ended).toBe(2)
    expect(running.stderr()).toMatch(/^error: Rules in Redis \(fluxgate\) could not be read: not connected/)
  })

  it('does not start on a public address without a token, with or without workers, and explains the fix', async () => {
    const workspace = withRules()
    for (const more of [[], ['--workers', '2']]) {
      const running = workspace.launch([...args, '--host', '0.0.0.0', ...more])
      expect(await running.ended).toBe(2)
      expect(running.stderr()).toContain('Set server.adminToken (or FLUXGATE_ADMIN_TOKEN), or listen on 127.0.0.1.')
    }
  })

  it('serves HTTPS with its own certificate', async () => {
    const workspace = withRules()
    const { cert, key } = selfSigned()
    workspace.write('cert.pem', cert)
    workspace.write('key.pem', key)
    workspace.write('fluxgate.yaml', { server: { tls: { cert: 'cert.pem', key: 'key.pem' } } })
    const { api } = await workspace.start(args)
    expect(api).toMatch(/^https:/)
    const status = await new Promise((resolve, reject) => {
      request(`${api}/health/live`, { ca: cert, servername: 'localhost' }, (response) => resolve(response.statusCode))
        .on('error', reject)
        .end()
    })
    expect(status).toBe(200)
  })

  it('starts workers with the last valid rules while the rules file is broken', async () => {
    const workspace = tempWorkspace()
    workspace.write('rules.yaml', { id: 'api', rules: [{ id: 'one', bands: [{ capacity: 7, window: '1h' }] }] })
    // With port 0, the port would change once no worker is left.
    const running = await workspace.start(['serve', '--port', String(await freePort()), '--workers', '2'])
    const peek = async () => {
      const body = JSON.stringify({ clientIp: '192.0.2.1', peek: true })
      const headers = { 'Content-Type': 'application/json', Connection: 'close' }
      const response = await fetch(`${running.api}/api/ratelimit/check`, { method: 'POST', headers, body })
      return ((await response.json()) as { limit: number }).limit
    }
    const children = () => readFileSync(`/proc/${running.pid}/task/${running.pid}/children`, 'utf8').trim().split(' ')
    const before = children()
    expect([before.length, await peek()]).toEqual([2, 7])
    workspace.write('rules.yaml', 'rules: [')
    await running.until('the broken file is reported', () => /rules\.yaml/.test(running.stderr()))
    for (const child of before) process.kill(Number(child), 'SIGKILL')
    await running.until('both new workers have the last valid rules', () => {
      return running.stderr().match(/worker \d+ starts with the last valid rules: /g)?.length === 2
    })
    await running.until('they answer', async () => (await peek()) === 7)
    await running.until('health reports the broken file', async () => {
      const { rules } = (await (await fetch(`${running.api}/health/ready`)).json()) as { rules?: { error?: string } }
      return /rules\.yaml/.test(rules?.error ?? '')
    })
    workspace.write('rules.yaml', { id: 'api', rules: [{ id: 'one', bands: [{ capacity: 9, window: '1h' }] }] })
    await running.until('the corrected rules are in effect', async () => (await peek()) === 9)
    running.process.kill('SIGTERM')
    expect(await running.ended).toBe(0)
  })

  it('runs several workers on one port', async () => {
    const workspace = withRules(1)
    const { uri } = sharedRedis()
    const env = { ...longTimeout, FLUXGATE_REDIS_URI: uri, FLUXGATE_STORE_PREFIX: freshPrefix() }
    const running = await workspace.start([...args, '--workers', '2'], env)
    expect(running.stdout()).toContain(`FluxGate API listens on ${running.api} with 2 workers\n`)
    const decisions = await Promise.all(Array.from({ length: 20 }, () => check(running)))
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(1)
    await fetch(`${running.api}/api/ratelimit/check`, {
      method: 'POST',
      headers: { ...json, traceparent: `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01` },
      body: JSON.stringify({ clientIp: '192.0.2.1', path: '/' }),
    })
    const metrics = await (await fetch(`${running.api}/metrics`)).text()
    expect(metrics).toContain('fluxgate_decisions_total{rule_set="api",rule="per-ip",result="denied"} 20\n')
    expect(metrics).toContain('fluxgate_rules{rule_set="api"} 1\n')
    const accepted = await fetch(`${running.api}/metrics`, { headers: { Accept: 'application/openmetrics-text' } })
    expect(accepted.headers.get('content-type')).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8')
    const samples = parseOpenMetrics(await accepted.text()).flatMap((family) => family.samples)
    const denied = { rule_set: 'api', rule: 'per-ip', result: 'denied' }
    expect(
      samples.find(({ name, labels }) => name === 'fluxgate_decisions_total' && labels.result === 'denied'),
    ).toEqual({
      name: 'fluxgate_decisions_total',
      labels: denied,
      value: 20,
      exemplar: {
        labels: { trace_id: 'ab'.repeat(16), span_id: 'cd'.repeat(8) },
        value: 1,
        at: expect.any(Number),
      },
    })
    running.process.kill('SIGHUP')
    await running.until('the workers have reloaded', () => running.stdout().includes('reloaded'))
    running.process.kill('SIGTERM')
    expect(await running.ended).toBe(0)
  })
})

describe('servers that share a Redis', () => {
  it('share rules, buckets and statistics; a rule changed through one applies in the other', async () => {
    const workspace = withRules()
    const { uri } = sharedRedis()
    const env = {
      ...longTimeout,
      FLUXGATE_REDIS_URI: uri,
      FLUXGATE_STORE_PREFIX: freshPrefix(),
      FLUXGATE_RULES_TYPE: 'redis',
    }
    const first = await workspace.start(args, { ...env, FLUXGATE_RELOAD_CHANNEL: env.FLUXGATE_STORE_PREFIX })
    const second = await workspace.start(args, { ...env, FLUXGATE_RELOAD_CHANNEL: env.FLUXGATE_STORE_PREFIX })
    expect(first.stdout()).toMatch(/^Rules: .*Redis.*, 0 rules\. Changes apply while it runs\.$/m)
    expect((await documentOf(`${first.api}/info`)).rules).toEqual({ type: 'redis', reload: 'PUBSUB', ruleSets: 0 })
    const put = await fetch(`${first.api}/api/rule-sets/api`, {
      method: 'PUT',
      headers: json,
      body: JSON.stringify(ruleSet(3)),
    })
    expect(put.status).toBe(201)
    expect((await check(first)).remaining).toBe(2)
    await second.until('the rule is in effect there too', async () => (await check(second)).remaining >= 0)
    const summed = async (): Promise<boolean> => {
      const { keys } = (await documentOf(`${first.api}/api/stats/top?by=requests`)) as { keys: { requests: number }[] }
      return (keys[0]?.requests ?? 0) >= 2
    }
    await first.until('statistics are shared', summed)
  })

  it('report since when the store is down, keep deciding, and recover', async () => {
    const redis = await stopAfterTest(startRedis())
    const workspace = withRules()
    const running = await workspace.start(args, { ...longTimeout, FLUXGATE_REDIS_URI: redis.uri })
    expect((await check(running)).degraded).toBe(false)
    const before = Date.now()
    await redis.kill()
    await running.until('a decision is degraded', async () => (await check(running, '192.0.2.9')).degraded)
    const ready = await fetch(`${running.api}/health/ready?strict`)
    const body = (await ready.json()) as { status: string; store: { status: string; sinceAt: number; error: string } }
    expect(ready.status).toBe(503)
    expect(body).toMatchObject({ status: 'DEGRADED', store: { status: 'DOWN', error: expect.any(String) } })
    expect((await fetch(`${running.api}/health/ready`)).status).toBe(200)
    expect(body.store.sinceAt).toBeGreaterThanOrEqual(before - 1_000)
    expect(body.store.sinceAt).toBeLessThanOrEqual(Date.now() + 1_000)
    expect((await fetch(`${running.api}/health/live`)).status).toBe(200)
    const metrics = await (await fetch(`${running.api}/metrics`)).text()
    expect(metrics).toMatch(/^fluxgate_degraded_decisions_total [1-9]/m)
    await redis.restart()
    await running.until('the store is up again', async () => {
      return (await fetch(`${running.api}/health/ready?strict`)).status === 200
    })
    const lines = running.stderr().trim().split('\n')
    const messages = lines.map((line) => (JSON.parse(line) as { message: string }).message)
    // Depending on the duration, a failure to share statistics may be logged as well.
    const ofStore = messages.filter((message) => message.startsWith('bucket store'))
    expect(ofStore).toEqual(['bucket store failed', 'bucket store recovered'])
  })
})

describe('a Redis that rejects the password', () => {
  it.each([['serve'], ['start', '--port', '0'], ['gateway', '--port', '0']])(
    'ends %s with status 2, instead of leaving it running without a port',
    async (...args) => {
      const redis = await stopAfterTest(startRedis({ password: 'right' }))
      const workspace = tempWorkspace()
      workspace.write('rules.yaml', { id: 'api', rules: [] })
      workspace.write('fluxgate.yaml', {
        gateway: { metricsPort: 0, routes: [{ id: 'one', uri: 'http://127.0.0.1:1' }] },
      })
      const running = workspace.launch(args, { FLUXGATE_REDIS_URI: `redis://:wrong@${redis.host}:${redis.port}` })
      expect(await running.ended).toBe(2)
      expect(running.stderr()).toContain('Set the password')
    },
  )
})

describe('servers that share a MongoDB', () => {
  it('share the rules: an edit through one reaches the other', async (context) => {
    if (mongoKind === undefined) {
      console.info('Skipped, because this machine has no MongoDB server: two servers that share rules in MongoDB.')
      context.skip()
      return
    }
    const mongo = await stopAfterTest(openMongo())
    const workspace = tempWorkspace()
    const database = `test-${freshPrefix().replaceAll(/\W/g, '')}`
    const env = {
      FLUXGATE_MONGO_URI: mongo.uri,
      FLUXGATE_RULES_DATABASE: database,
      FLUXGATE_RELOAD_POLLING_INTERVAL: '200ms',
    }
    const first = await workspace.start(args, env)
    const second = await workspace.start(args, env)
    expect(first.stdout()).toMatch(/^Rules: MongoDB at .*, 0 rules\. Changes apply while it runs\.$/m)
    const body = JSON.stringify(ruleSet(3))
    const put = await fetch(`${first.api}/api/rule-sets/api`, { method: 'PUT', headers: json, body })
    expect(put.status).toBe(201)
    expect((await check(first)).remaining).toBe(2)
    await second.until('the rule is in effect there too', async () => (await check(second)).remaining >= 0)
    expect(((await documentOf(`${second.api}/info`)).rules as { type: string }).type).toBe('mongo')
  })
})

describe('secrets', () => {
  it('appear in no log, metric, event, response or output', async () => {
    const secrets = ['planted-admin', 'planted-check', 'planted-apikey', 'planted-redispass']
    const redis = await stopAfterTest(startRedis({ password: 'planted-redispass' }))
    const workspace = tempWorkspace()
    const rule = { id: 'per-key', limitScope: 'API_KEY', bands: [{ capacity: 1, window: '1h' }] }
    workspace.write('rules.yaml', { id: 'api', rules: [rule] })
    const running = await workspace.start(args, {
      FLUXGATE_REDIS_URI: redis.uri,
      FLUXGATE_STORE_PASSWORD: 'planted-redispass',
      FLUXGATE_ADMIN_TOKEN: 'planted-admin',
      FLUXGATE_CHECK_TOKEN: 'planted-check',
      FLUXGATE_LOG_LEVEL: 'debug',
    })
    const admin = { Authorization: 'Bearer planted-admin' }
    const events = await fetch(`${running.api}/api/events`, { headers: admin })
    const reader = events.body?.getReader()
    const ask = (path: string, init: RequestInit = {}) =>
      fetch(`${running.api}${path}`, {
        ...init,
        headers: { ...admin, ...json, traceparent: `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01` },
      })
    const body = JSON.stringify({ apiKey: 'planted-apikey', path: '/x' })
    for (let i = 0; i < 3; i++) await ask('/api/ratelimit/check', { method: 'POST', body })
    const patch = JSON.stringify({ ...rule, description: 'changed' })
    await ask('/api/rule-sets/api/rules/per-key', { method: 'PUT', body: patch })
    await fetch(`${running.api}/metrics`, { headers: { Authorization: 'Bearer planted-check' } })
    const pages = [
      '/metrics',
      '/info',
      '/api/stats',
      '/api/stats/top',
      '/api/keys?prefix=',
      '/api/decisions/recent',
      '/health/ready',
      '/console',
    ]
    const texts = await Promise.all(pages.map(async (page) => (await ask(page)).text()))
    let limitOf = ''
    while (!limitOf.includes('decision')) limitOf += new TextDecoder().decode((await reader?.read())?.value)
    await reader?.cancel()
    await redis.kill()
    await running.until('the failure is in the log', async () => {
      await ask('/api/ratelimit/check', { method: 'POST', body })
      return running.stderr().includes('bucket store failed')
    })
    const everything = [running.stdout(), running.stderr(), limitOf, ...texts].join('\n')
    for (const secret of secrets) expect(everything).not.toContain(secret)
    expect(running.stderr()).toContain('"message":"change applied"')
    expect(running.stderr()).toContain(`"traceId":"${'ab'.repeat(16)}"`)
    const { stdout } = spawnSync('ps', ['-o', 'args=', '-p', String(running.pid)], { encoding: 'utf8' })
    for (const secret of secrets) expect(stdout).not.toContain(secret)
  })
})
