/** Envoy's HTTP rate limit filter in front of a service, with FluxGate as its rate limit service. */
import { type AddressInfo, connect, createServer } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { RateLimitServer } from '../../../src/envoy/rate-limit-server.js'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import type { FluxGateOptions } from '../../../src/gate/options.js'
import type { RuleInput } from '../../../src/rules/schema/input.js'
import { startRedis } from '../../servers/redis-server.js'
import { envoyProgram, startEnvoy } from './envoy-process.js'

const rule = (keys: string, capacity: number, more: Partial<RuleInput> = {}): RuleInput => ({
  id: keys.replaceAll(/[^a-z_]/g, '.'),
  when: { 'attributes.envoy.descriptor': keys },
  limitScope: 'GLOBAL',
  algorithm: 'FIXED_WINDOW',
  bands: [{ label: 'day', capacity, window: '1d' }],
  ...more,
})

async function serve(rules: readonly RuleInput[], options: Partial<FluxGateOptions> = {}, port = 0) {
  const gate = await createFluxGate({ rules: { id: 'edge', rules }, ...options })
  const server = new RateLimitServer({ gate, headers: 'both' })
  const stop = async (): Promise<void> => {
    await server.close(1_000)
    await gate.close()
  }
  onTestFinished(stop)
  return { gate, stop, port: (await server.listen({ host: '127.0.0.1', port })).port }
}

/** Forwards connections to a port, and counts them. */
async function countingProxy(target: number) {
  let connections = 0
  const proxy = createServer((client) => {
    connections += 1
    const server = connect(target, '127.0.0.1')
    client.pipe(server).pipe(client)
    client.on('error', () => server.destroy())
    server.on('error', () => client.destroy())
  })
  onTestFinished(() => void proxy.close())
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  return {
    port: (proxy.address() as AddressInfo).port,
    get connections() {
      return connections
    },
  }
}

const generic = (value: string) => ({ actions: [{ generic_key: { descriptor_value: value } }] })

describe.skipIf(envoyProgram === undefined)('Envoy', () => {
  it('limits by generic key, header, address and header match, and sends the headers to the client', async () => {
    const { port } = await serve([
      rule('tenant', 2, { limitScope: 'CUSTOM', keyField: 'attributes.tenant' }),
      rule('remote_address|generic_key', 4, { limitScope: 'IP' }),
      rule('header_match', 1, { when: { 'attributes.header_match': 'beta' } }),
    ])
    const { get } = await startEnvoy({
      grpcPort: port,
      rateLimits: [
        { actions: [{ request_headers: { header_name: 'x-tenant', descriptor_key: 'tenant' } }] },
        { actions: [{ remote_address: {} }, { generic_key: { descriptor_value: 'all' } }] },
        {
          actions: [
            {
              header_value_match: {
                descriptor_value: 'beta',
                headers: [{ name: 'x-beta', present_match: true }],
              },
            },
          ],
        },
      ],
    })
    const first = await get('/', { 'x-tenant': 'acme' })
    expect(first.status).toBe(200)
    expect(first.headers.get('x-ratelimit-limit')).toBe('2')
    expect(first.headers.get('ratelimit')).toContain('"tenant.day";r=1;')
    expect((await get('/', { 'x-tenant': 'acme' })).status).toBe(200)
    const rejected = await get('/', { 'x-tenant': 'acme' })
    expect([rejected.status, rejected.headers.get('x-envoy-ratelimited')]).toEqual([429, 'true'])
    expect(Number(rejected.headers.get('retry-after'))).toBeGreaterThan(0)
    // The rejected request was charged to no descriptor, so the address has two of four left.
    expect((await get('/', { 'x-beta': '1' })).status).toBe(200)
    expect((await get('/', { 'x-beta': '1' })).status).toBe(429)
    expect((await get('/')).status).toBe(200)
    expect((await get('/')).status).toBe(429)
  })

  it('gets what it needs for its own X-RateLimit headers, and shadow rules reject nothing', async () => {
    const { port } = await serve([rule('generic_key', 1, { mode: 'SHADOW' }), rule('path', 3)])
    const { get } = await startEnvoy({
      grpcPort: port,
      rateLimits: [generic('a'), { actions: [{ request_headers: { header_name: ':path', descriptor_key: 'path' } }] }],
      filter: { enable_x_ratelimit_headers: 'DRAFT_VERSION_03' },
    })
    const { headers } = await get('/')
    expect(headers.get('x-ratelimit-limit')).toContain('3, 3;w=86400')
    expect(headers.get('x-ratelimit-remaining')).toContain('2')
    expect((await get('/')).status).toBe(200)
  })

  it('charges and refunds hits when the response is complete', async () => {
    const { port, gate } = await serve([rule('generic_key', 100)])
    const { get } = await startEnvoy({
      grpcPort: port,
      rateLimits: [
        generic('a'),
        { ...generic('a'), hits_addend: { format: '%BYTES_SENT%' }, apply_on_stream_done: true },
        { ...generic('a'), hits_addend: { number: 4, is_negative_hits: true }, apply_on_stream_done: true },
      ],
    })
    const left = async () =>
      (await gate.look({ ruleSetId: 'edge', ruleId: 'generic_key', key: 'global' }))[0]?.remaining
    expect((await get('/', { 'x-bytes': '20' })).status).toBe(200)
    // 1 when the request starts; then 20 bytes are charged and 4 hits given back.
    await expect.poll(left).toBe(100 - 1 - 20 + 4)
  })

  it('applies its failure mode while FluxGate is away, and uses it again afterwards', async () => {
    const rules = [rule('generic_key', 1_000)]
    const { port, stop } = await serve(rules)
    const open = await startEnvoy({ grpcPort: port, rateLimits: [generic('a')] })
    const closed = await startEnvoy({ grpcPort: port, rateLimits: [generic('a')], filter: { failure_mode_deny: true } })
    const statuses = async () => [(await open.get('/')).status, (await closed.get('/')).status]
    expect(await statuses()).toEqual([200, 200])
    await stop()
    expect(await statuses()).toEqual([200, 500])
    await serve(rules, {}, port)
    await expect.poll(statuses, { timeout: 20_000 }).toEqual([200, 200])
  })

  it('replaces busy connections after max_connection_duration without failing a call', async () => {
    const { port } = await serve([rule('generic_key', 1_000_000)])
    const counting = await countingProxy(port)
    const { get } = await startEnvoy({
      grpcPort: counting.port,
      rateLimits: [generic('a')],
      filter: { failure_mode_deny: true },
      clusterOptions: { common_http_protocol_options: { max_connection_duration: '0.2s' } },
    })
    const statuses = new Set<number>()
    const keepAsking = async () => {
      while (counting.connections < 5) statuses.add((await get('/')).status)
    }
    await Promise.all(Array.from({ length: 16 }, keepAsking))
    expect([...statuses]).toEqual([200])
  })

  it('continues while Redis is down: limits locally, or fails under DENY', async () => {
    const redis = await startRedis()
    onTestFinished(() => redis.stop())
    const { port } = await serve([rule('generic_key', 1_000), rule('strict', 1_000, { onStoreFailure: 'DENY' })], {
      store: redis.uri,
    })
    const local = await startEnvoy({ grpcPort: port, rateLimits: [generic('a')], filter: { failure_mode_deny: true } })
    const strict = await startEnvoy({
      grpcPort: port,
      rateLimits: [{ actions: [{ generic_key: { descriptor_key: 'strict', descriptor_value: 'a' } }] }],
      filter: { failure_mode_deny: true },
    })
    expect([(await local.get('/')).status, (await strict.get('/')).status]).toEqual([200, 200])
    await redis.stop()
    for (let i = 0; i < 5; i++)
      expect([(await local.get('/')).status, (await strict.get('/')).status]).toEqual([200, 500])
  })
})
