/** `fluxgate gateway` as a process: output, reload, shutdown, workers, metrics, access log and memory. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Agent, type IncomingMessage, request } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { describe, expect, it, onTestFinished } from 'vitest'
import { parseOpenMetrics } from '../fixtures/open-metrics.js'
import { stopAfterTest } from '../fixtures/stop-after-test.js'
import { answerOf, ask, deferred, echoUpstream, serve, upstream } from '../fixtures/test-gateway.js'
import { startRedis } from '../servers/redis-server.js'
import { selfSigned } from '../servers/self-signed.js'
import { freshPrefix, sharedRedis } from '../servers/shared-redis.js'
import { tempWorkspace, type Workspace } from './running-program.js'

const route = (id: string, uri: string, path = '/**', filters: unknown[] = []) => ({
  id,
  uri,
  predicates: [`Path=${path}`],
  filters,
})
const configure = (workspace: Workspace, routes: unknown[], more: object = {}) =>
  workspace.write('fluxgate.yaml', { gateway: { routes, ...more } })
const oneAnHour = { name: 'RateLimiter', args: { bands: [{ capacity: 1, window: '1h' }] } }
const args = ['gateway', '--port', '0']

describe('starting', () => {
  it('prints its URL, routes and rules, and warns about routes without a limit', async () => {
    const workspace = tempWorkspace()
    const { url: uri } = await echoUpstream()
    workspace.write('rules.yaml', { id: 'shop', rules: [{ id: 'one', bands: [{ capacity: 2, window: '1h' }] }] })
    configure(workspace, [route('shop', uri, '/shop/**', ['RateLimiter=shop']), route('rest', uri)])
    const running = await workspace.start(args)
    expect(running.stdout()).toBe(
      `FluxGate listens on ${running.url}\n` +
        'Rules: rules.yaml, 1 rule. Saved edits apply immediately.\n' +
        'Routes: fluxgate.yaml, 2 routes. Saved edits apply immediately.\n\nPress Ctrl-C to stop.\n',
    )
    expect(JSON.parse(running.stderr())).toMatchObject({
      level: 'warn',
      message: 'routes without a limit: rest. Add a RateLimiter filter, or set ratelimit.filterEnabled: true.',
    })
    const seen = [1, 2, 3].map(() => `${running.url}/shop/x`)
    expect((await Promise.all(seen.map((one) => ask(one)))).map(({ status }) => status).sort()).toEqual([200, 200, 429])
  })

  it('warns that no request is limited without rules and filters', async () => {
    const workspace = tempWorkspace()
    const { url: uri } = await echoUpstream()
    configure(workspace, [route('rest', uri)])
    const running = await workspace.start(args)
    expect(JSON.parse(running.stderr())).toMatchObject({
      level: 'warn',
      message: 'no request is limited: there are no rules, and no route has a RateLimiter filter.',
    })
  })

  it.each([
    ['no routes', { gateway: {} }, /^error: No routes are configured\. Add them to fluxgate\.yaml/],
    [
      'an invalid route',
      { gateway: { routes: [{ id: 'a', uri: 'x', filters: ['StripPrefx=1'] }] } },
      /2 errors\n {2}gateway\.routes\[0\]\.uri: .*\n {2}gateway\.routes\[0\]\.filters\[0\]: unknown name "StripPrefx"; did you mean StripPrefix\?/,
    ],
    [
      'an unknown rule set',
      { gateway: { routes: [route('a', 'http://127.0.0.1:1', '/', ['RateLimiter=x'])] } },
      /gateway\.routes\[0\]\.filters\[0\]\.ruleSet: rule set "x" does not exist/,
    ],
  ])('reports %s and exits with 2', async (_, document, message) => {
    const workspace = tempWorkspace()
    workspace.write('fluxgate.yaml', document)
    for (const more of [[], ['--workers', '2']]) {
      const running = workspace.launch([...args, ...more])
      expect(await running.ended).toBe(2)
      expect(running.stderr()).toMatch(message)
      expect(running.stderr().match(/^error:/gm)).toHaveLength(1)
    }
  })

  it('trusts an https upstream with a CA from NODE_EXTRA_CA_CERTS', async () => {
    const workspace = tempWorkspace()
    const { cert, key } = selfSigned()
    workspace.write('ca.pem', cert)
    const { port } = await serve(createSecureServer({ cert, key }, (message, response) => response.end(message.url)))
    configure(workspace, [route('secure', `https://localhost:${port}`)])
    const running = await workspace.start(args, { NODE_EXTRA_CA_CERTS: workspace.file('ca.pem') })
    for (let i = 0; i < 3; i++) expect(await ask(`${running.url}/x`)).toMatchObject({ status: 200, body: '/x' })
  })

  it('reuses the connection to an https upstream for requests with different Host headers', async () => {
    const workspace = tempWorkspace()
    const { cert, key } = selfSigned()
    workspace.write('ca.pem', cert)
    let connections = 0
    const secure = createSecureServer({ cert, key }, (message, response) => response.end(message.headers.host))
    const { port } = await serve(secure.on('secureConnection', () => (connections += 1)))
    configure(workspace, [route('secure', `https://127.0.0.1:${port}`, '/**', ['PreserveHostHeader'])])
    const running = await workspace.start(args, { NODE_EXTRA_CA_CERTS: workspace.file('ca.pem') })
    for (const host of ['a.example.org', 'b.example.org', 'a.example.org'])
      expect(await ask(`${running.url}/x`, { headers: { host } })).toMatchObject({ status: 200, body: host })
    expect(connections).toBe(1)
  })
})

describe('an edit of the routes', () => {
  it('applies immediately, does not affect requests in flight, and is rejected if it is invalid', async () => {
    const workspace = tempWorkspace()
    const resume = deferred()
    const arrived = deferred()
    const a = await upstream(async (message, response) => {
      if (message.url === '/slow') {
        arrived.resolve()
        await resume.promise
      }
      response.end('a')
    })
    const b = await upstream((_, response) => response.end('b'))
    configure(workspace, [route('one', a.url)])
    const running = await workspace.start(args)
    const body = async (path: string) => (await ask(`${running.url}${path}`)).body
    expect(await body('/x')).toBe('a')
    const slow = body('/slow')
    await arrived.promise

    configure(workspace, [route('one', b.url, '/x', [oneAnHour])])
    await running.until('the reload is logged', () => running.stdout().includes('reloaded: 1 route active'))
    expect([await body('/x'), (await ask(`${running.url}/x`)).status]).toEqual(['b', 429])
    expect((await ask(`${running.url}/y`)).status).toBe(404)
    resume.resolve()
    expect(await slow).toBe('a')

    configure(workspace, [route('one', 'nowhere')])
    const reloadError =
      /failed to reload fluxgate\.yaml, the current routes stay in effect: gateway\.routes\[0\]\.uri: must be http/
    await running.until('the error is logged', () => reloadError.test(running.stderr()))
    expect((await ask(`${running.url}/x`)).status).toBe(429)

    configure(workspace, [route('one', a.url), route('two', b.url)], { port: 1 })
    await running.until('a required restart is logged', () =>
      running.stderr().includes('also changes settings that take effect only after a restart'),
    )
    expect(await body('/x')).toBe('a')
  })
})

describe('stopping', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)(
    'finishes requests in flight on %s, accepts no new ones, and exits with 0',
    async (signal) => {
      const workspace = tempWorkspace()
      const resume = deferred()
      const arrived = deferred()
      const { url: uri } = await upstream(async (message, response) => {
        if (message.url === '/slow') {
          arrived.resolve()
          await resume.promise
        }
        response.end('done')
      })
      configure(workspace, [route('one', uri)])
      const running = await workspace.start(args)
      const agent = new Agent({ keepAlive: true })
      onTestFinished(() => agent.destroy())
      await ask(`${running.url}/idle`, { agent })
      const slow = ask(`${running.url}/slow`, { agent })
      await arrived.promise
      running.process.kill(signal)
      await running.until('it is stopping', () => running.stdout().includes('stopping'))
      await running.until('it accepts no connections', () =>
        ask(running.url).then(
          () => false,
          () => true,
        ),
      )
      resume.resolve()
      expect(await slow).toMatchObject({ status: 200, body: 'done', headers: { connection: 'close' } })
      expect(await running.ended).toBe(0)
    },
  )

  it('rejects delayed requests with 503 and disconnects unfinished ones after drainTimeout', async () => {
    const workspace = tempWorkspace()
    const arrived = deferred()
    const { url: uri } = await upstream((message, response) => {
      if (message.url === '/stuck') arrived.resolve()
      else response.end('ok')
    })
    const leaky = { algorithm: 'LEAKY_BUCKET', capacity: 2, refillTokens: 1, window: '1h' }
    configure(workspace, [route('held', uri, '/held', [{ name: 'RateLimiter', args: leaky }]), route('rest', uri)], {
      drainTimeout: '200ms',
    })
    const running = await workspace.start(args)
    expect((await ask(`${running.url}/held`)).status).toBe(200)
    const held = ask(`${running.url}/held`)
    const stuck = ask(`${running.url}/stuck`).catch((error: Error) => error.message)
    await arrived.promise
    // A further request is rejected only while the first one occupies the only queue slot.
    await running.until('one request is delayed', async () => (await ask(`${running.url}/held`)).status === 429)
    running.process.kill('SIGTERM')
    expect(await held).toMatchObject({ status: 503, headers: { 'content-type': 'application/problem+json' } })
    expect(await stuck).toMatch(/hang up|ECONNRESET/)
    expect(await running.ended).toBe(0)
  })
})

describe('workers', () => {
  it('share the port and the load, warn that each has its own limits, are replaced if they die, and stop together', async () => {
    const workspace = tempWorkspace()
    const { url: uri } = await echoUpstream()
    configure(workspace, [route('one', uri, '/**', [oneAnHour])], { workers: 2 })
    const running = await workspace.start(args)
    expect(running.stdout()).toContain(`FluxGate listens on ${running.url} with 2 workers\n`)
    expect(JSON.parse(running.stderr())).toMatchObject({
      level: 'warn',
      message: 'buckets are in memory, so each of the 2 workers enforces its own limits. Use Redis to share them.',
    })
    const statuses = await Promise.all(Array.from({ length: 20 }, () => ask(running.url).then(({ status }) => status)))
    expect(statuses.filter((status) => status === 200)).toHaveLength(2)

    configure(workspace, [route('one', uri)], { workers: 2 })
    await running.until('the reload is logged', () => running.stdout().includes('reloaded: 1 route active'))
    await running.until('all workers use the new routes', async () => {
      const all = await Promise.all(Array.from({ length: 8 }, () => ask(running.url)))
      return all.every(({ status }) => status === 200)
    })
    expect(running.stdout().match(/reloaded/g)).toHaveLength(1)

    const children = readFileSync(`/proc/${running.pid}/task/${running.pid}/children`, 'utf8').trim().split(' ')
    expect(children).toHaveLength(2)
    process.kill(Number(children[0]), 'SIGKILL')
    await running.until('the lost worker is logged', () =>
      /worker \d+ exited; starting a replacement/.test(running.stderr()),
    )
    for (let i = 0; i < 4; i++) expect((await ask(running.url)).status).toBe(200)
    running.process.kill('SIGTERM')
    expect(await running.ended).toBe(0)
    await expect(ask(running.url)).rejects.toThrow()
  })

  it('share their limits in Redis', async () => {
    const workspace = tempWorkspace()
    const { url: uri } = await echoUpstream()
    const tenAnHour = { name: 'RateLimiter', args: { bands: [{ capacity: 10, window: '1h' }] } }
    configure(workspace, [route('one', uri, '/**', [tenAnHour])])
    const env = {
      FLUXGATE_REDIS_URI: sharedRedis().uri,
      FLUXGATE_STORE_PREFIX: freshPrefix(),
      FLUXGATE_STORE_TIMEOUT_MS: '10000',
    }
    const running = await workspace.start([...args, '--workers', '2'], env)
    expect(running.stderr()).toBe('')
    const statuses = await Promise.all(Array.from({ length: 30 }, () => ask(running.url).then(({ status }) => status)))
    expect(statuses.filter((status) => status === 200)).toHaveLength(10)
    expect(statuses.filter((status) => status === 429)).toHaveLength(20)
  })
})

describe('metrics and health', () => {
  it('have a separate port, sum all workers, and require the admin token if one is set', async () => {
    const workspace = tempWorkspace()
    const { url: uri } = await echoUpstream()
    configure(workspace, [route('one', uri, '/**', [oneAnHour])], { metricsPort: 0 })
    const env = { FLUXGATE_ADMIN_TOKEN: 'planted-s3cr3t' }
    const running = await workspace.start([...args, '--workers', '2'], env)
    const [, base = ''] = /^Metrics and health: (\S+)\/metrics, /m.exec(running.stdout()) ?? []
    const all = await Promise.all(Array.from({ length: 10 }, () => ask(running.url)))
    expect(all.filter(({ status }) => status === 429).length).toBeGreaterThanOrEqual(8)
    expect((await ask(`${base}/metrics`)).status).toBe(401)
    const { status, body } = await ask(`${base}/metrics`, { headers: { Authorization: 'Bearer planted-s3cr3t' } })
    expect(status).toBe(200)
    const counts = [...body.matchAll(/^fluxgate_decisions_total\{[^}]*\} (\d+)$/gm)].map(([, count]) => Number(count))
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(10)
    expect(body).not.toContain('planted-s3cr3t')
    await ask(running.url, { headers: { traceparent: `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01` } })
    const headers = { Authorization: 'Bearer planted-s3cr3t', Accept: 'application/openmetrics-text; version=1.0.0' }
    const samples = parseOpenMetrics((await ask(`${base}/metrics`, { headers })).body).flatMap((one) => one.samples)
    expect(samples.find(({ name }) => name === 'fluxgate_decision_duration_seconds_count')?.value).toBe(11)
    const traces = samples.flatMap(({ exemplar }) => exemplar?.labels.trace_id ?? [])
    expect(traces).toEqual(['ab'.repeat(16), 'ab'.repeat(16)])
    expect(await ask(`${base}/health/ready`)).toMatchObject({ status: 200 })
    expect(await ask(`${base}/health/live`)).toMatchObject({ status: 200 })
    expect((await ask(`${base}/api/rule-sets`)).status).toBe(404)
    running.process.kill('SIGTERM')
    expect(await running.ended).toBe(0)
  })

  it('of two workers stay ready while Redis is down, and detect outage and recovery without traffic', async () => {
    const redis = await stopAfterTest(startRedis())
    const workspace = tempWorkspace()
    const { url: uri } = await echoUpstream()
    configure(workspace, [route('one', uri, '/**', [oneAnHour])], { metricsPort: 0 })
    const env = { FLUXGATE_REDIS_URI: redis.uri, FLUXGATE_STORE_TIMEOUT_MS: '10000' }
    const running = await workspace.start([...args, '--workers', '2'], env)
    const [, base = ''] = /^Metrics and health: (\S+)\/metrics, /m.exec(running.stdout()) ?? []
    const ready = new Set<number>()
    const strictBecomes = (status: number) =>
      running.until(`strict readiness is ${status}`, async () => {
        ready.add((await ask(`${base}/health/ready`)).status)
        return (await ask(`${base}/health/ready?strict`)).status === status
      })
    await strictBecomes(200)
    await redis.kill()
    await strictBecomes(503)
    expect((await ask(`${base}/metrics`)).body).toContain('\nfluxgate_store_up 0\n')
    await redis.restart()
    await strictBecomes(200)
    expect((await ask(`${base}/metrics`)).body).toContain('\nfluxgate_store_up 1\n')
    expect([...ready]).toEqual([200])
  })

  it.each([
    [
      'is in use',
      (port: number) => ({ metricsPort: port }),
      1,
      /Port \d+ on 127\.0\.0\.1 is already in use.*FLUXGATE_GATEWAY_METRICS_PORT=/,
    ],
    ['would be public', () => ({ metricsPort: 0, metricsHost: '0.0.0.0' }), 2, /without an admin token/],
  ])('on a port that %s prevent the start', async (_, settings, status, message) => {
    const workspace = tempWorkspace()
    const { url: uri, port } = await echoUpstream()
    configure(workspace, [route('one', uri)], settings(port))
    const running = workspace.launch(args)
    expect(await running.ended).toBe(status)
    expect(running.stderr()).toMatch(message)
  })
})

describe('the access log', () => {
  it('has one line of JSON per request, without secrets', async () => {
    const workspace = tempWorkspace()
    const { url: uri } = await upstream((_, response) => response.end('12345'))
    configure(workspace, [route('api', uri, '/api/**', [oneAnHour]), route('rest', uri, '/open')], {
      accessLog: 'access.jsonl',
    })
    const running = await workspace.start(args)
    const headers = { 'X-API-Key': 'k-secret', Authorization: 'Bearer t-secret', 'X-User-Id': 'u-secret' }
    const traceparent = `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01`
    await ask(`${running.url}/api/users/7?token=q-secret`, { headers: { ...headers, traceparent } })
    await ask(`${running.url}/api/users/7`, { headers })
    await ask(`${running.url}/open`, { method: 'HEAD' })
    await ask(`${running.url}/nowhere`)
    running.process.kill('SIGTERM')
    expect(await running.ended).toBe(0)
    const text = readFileSync(workspace.file('access.jsonl'), 'utf8')
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    const common = {
      time: expect.stringMatching(/^\d{4}-.*Z$/),
      durationMs: expect.any(Number),
      clientIp: '127.0.0.1',
      traceId: null,
      aborted: false,
    }
    expect(lines).toEqual([
      {
        ...common,
        method: 'GET',
        path: '/api/users/7',
        status: 200,
        bytes: 5,
        route: 'api',
        decision: 'allowed',
        traceId: 'ab'.repeat(16),
      },
      {
        ...common,
        method: 'GET',
        path: '/api/users/7',
        status: 429,
        bytes: expect.any(Number),
        route: 'api',
        decision: 'rejected',
      },
      { ...common, method: 'HEAD', path: '/open', status: 200, bytes: 0, route: 'rest', decision: 'unlimited' },
      {
        ...common,
        method: 'GET',
        path: '/nowhere',
        status: 404,
        bytes: expect.any(Number),
        route: null,
        decision: null,
      },
    ])
    expect(text).not.toContain('secret')
  })
})

describe('memory', () => {
  /** The default is small to keep the test short. FLUXGATE_TEST_BODY_MIB=1024 sends 1 GiB. */
  const total = Number(process.env.FLUXGATE_TEST_BODY_MIB ?? 256) * 2 ** 20
  const chunk = Buffer.alloc(2 ** 16)

  async function pour(into: NodeJS.WritableStream): Promise<void> {
    for (let sent = 0; sent < total; sent += chunk.length) if (!into.write(chunk)) await once(into, 'drain')
    into.end()
  }
  async function drain(from: AsyncIterable<Buffer>): Promise<number> {
    let bytes = 0
    for await (const data of from) bytes += data.length
    return bytes
  }

  /** Peak resident memory of the process in bytes. */
  function peakOf(pid: number | undefined): number {
    const [, peakKiB] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return Number(peakKiB) * 1_024
  }

  it.each([
    ['with a length', { 'Content-Length': total }],
    ['in chunks', { 'Transfer-Encoding': 'chunked' }],
  ])('does not grow with large request and response bodies %s', async (_, headers) => {
    const workspace = tempWorkspace()
    const { url: uri } = await upstream(async (message, response) => {
      if (message.method === 'PUT') response.end(String(await drain(message)))
      else await pour(response.writeHead(200, headers))
    })
    configure(workspace, [route('one', uri)])
    const running = await workspace.start(args)
    const before = peakOf(running.pid)
    const up = request(running.url, { method: 'PUT', agent: false, headers })
    const answered = once(up, 'response') as Promise<[IncomingMessage]>
    await pour(up)
    expect((await answerOf((await answered)[0])).body).toBe(String(total))
    const down = request(running.url, { agent: false }).end()
    const [response] = (await once(down, 'response')) as [IncomingMessage]
    expect(await drain(response)).toBe(total)
    const peak = peakOf(running.pid)
    if (process.env.FLUXGATE_TEST_BODY_MIB)
      console.log(`${total / 2 ** 20} MiB up and down: peak RSS ${peak / 2 ** 20} MiB`)
    // A gateway that buffered the body would grow by its whole size. Half of it leaves room for the garbage collector.
    expect(peak - before).toBeLessThan(total / 2)
  })
})
