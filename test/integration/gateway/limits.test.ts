/** Rate limits in the gateway: rejected and delayed requests, response headers, and uploads. */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { eventually } from '../../fixtures/eventually.js'
import {
  answerOf,
  ask,
  type Echo,
  echoUpstream,
  gatewayTo,
  gatewayWith,
  raw,
  statuses,
  upstream,
} from '../../fixtures/test-gateway.js'

const limiter = (args: object) => ({ name: 'RateLimiter', args })
const oneAnHour = (more: object = {}) => limiter({ bands: [{ capacity: 1, window: '1h' }], ...more })
const rules = {
  ruleSets: [
    { id: 'gold', rules: [{ id: 'gold', bands: [{ capacity: 3, window: '1h' }] }] },
    { id: 'default', rules: [{ id: 'each', path: '/shop/**', bands: [{ capacity: 2, window: '1h' }] }] },
  ],
}

describe('a RateLimiter', () => {
  it('has its own rule, named after its route in the headers', async () => {
    const { url: uri } = await echoUpstream()
    const args = {
      algorithm: 'FIXED_WINDOW',
      bands: [{ label: 'hourly', capacity: 2, window: '1h' }],
      keyResolver: 'ip',
    }
    const { url } = await gatewayWith({ routes: [{ id: 'orders', uri, filters: [limiter(args)] }] })
    expect((await ask(url)).headers).toMatchObject({
      'ratelimit-policy': '"orders.hourly";q=2;w=3600',
      'x-ratelimit-limit': '2',
      'x-ratelimit-remaining': '1',
    })
    expect(await statuses(url, 2)).toEqual([200, 429])
    expect(await ask(url)).toMatchObject({ status: 429, headers: { 'content-type': 'application/problem+json' } })
    expect(JSON.parse((await ask(url)).body)).toMatchObject({ status: 429, 'violated-policies': ['orders.hourly'] })
  })

  it.each([
    ['user', 'X-User-Id'],
    ['apiKey', 'X-API-Key'],
    ['header.x-tenant', 'X-Tenant'],
  ])('uses the key %s', async (keyResolver, header) => {
    const { url: uri } = await echoUpstream()
    const { url } = await gatewayWith({
      routes: [{ id: 'one', uri, filters: [oneAnHour({ keyResolver })] }],
      ratelimit: { userIdHeader: 'X-User-Id', apiKeyHeader: 'X-API-Key' },
    })
    const as = (name: string) => ask(url, { headers: { [header]: name } })
    expect([(await as('a')).status, (await as('b')).status, (await as('a')).status]).toEqual([200, 200, 429])
  })

  it('ignores identity headers that are not configured, and reports the limit that needs one', async () => {
    const warnings: unknown[] = []
    const onWarning = (warning: { code?: string; message: string }) => warnings.push([warning.code, warning.message])
    process.on('warning', onWarning)
    onTestFinished(() => void process.off('warning', onWarning))
    const { url: uri } = await echoUpstream()
    const { url } = await gatewayWith({ routes: [{ id: 'one', uri, filters: [oneAnHour({ keyResolver: 'user' })] }] })
    const as = (name: string) => ask(url, { headers: { 'X-User-Id': name } })
    expect([(await as('a')).status, (await as('b')).status]).toEqual([200, 429])
    expect(warnings).toContainEqual([
      'FLUXGATE_IDENTITY_UNCONFIGURED',
      expect.stringContaining('Rule "one" of rule set "route:one" counts by USER_ID'),
    ])
  })

  it('uses the client IP, determined through trusted proxies', async () => {
    const { url: uri } = await echoUpstream()
    const routes = [{ id: 'one', uri, filters: [oneAnHour()] }]
    const from = (url: string, ip: string) =>
      ask(url, { headers: { 'X-Forwarded-For': ip } }).then(({ status }) => status)
    const open = await gatewayWith({ routes })
    expect([await from(open.url, '203.0.113.1'), await from(open.url, '203.0.113.2')]).toEqual([200, 429])
    const trusting = await gatewayWith({ routes, ratelimit: { trustedProxies: ['127.0.0.1'] } })
    expect([
      await from(trusting.url, '203.0.113.1'),
      await from(trusting.url, '203.0.113.2'),
      await from(trusting.url, '9.9.9.9, 203.0.113.2'),
    ]).toEqual([200, 200, 429])
  })

  it('can refer to a rule set and cost several permits', async () => {
    const { url: uri } = await echoUpstream()
    const { url } = await gatewayWith({
      rules,
      routes: [
        { id: 'short', uri, predicates: ['Path=/a'], filters: ['RateLimiter=gold'] },
        { id: 'long', uri, predicates: ['Path=/b'], filters: [limiter({ ruleSet: 'gold', permits: 2 })] },
      ],
    })
    expect([...(await statuses(`${url}/b`, 1)), ...(await statuses(`${url}/a`, 2))]).toEqual([200, 200, 429])
  })

  it('that refers to an unknown rule set is a startup error', async () => {
    const routes = [{ id: 'one', uri: 'http://127.0.0.1:1', filters: [limiter({ ruleSet: 'silver' })] }]
    await expect(gatewayWith({ routes, rules })).rejects.toThrow(
      /gateway\.routes\[0\]\.filters\[0\]\.args\.ruleSet: rule set "silver" does not exist in .*rules\.yaml; known rule sets: gold, default/,
    )
    await expect(gatewayWith({ routes })).rejects.toThrow(
      'rule set "silver" does not exist in rules.yaml, which does not exist',
    )
  })

  it('is independent of the ids of other routes', async () => {
    const { url: uri } = await echoUpstream()
    const twoAnHour = limiter({ bands: [{ capacity: 2, window: '1h' }] })
    const routes = [
      {
        id: 'a',
        uri,
        predicates: ['Path=/a'],
        filters: [limiter({ bands: [{ capacity: 9, window: '1h' }] }), twoAnHour],
      },
      { id: 'a-2', uri, predicates: ['Path=/b'], filters: [limiter({ bands: [{ capacity: 5, window: '1h' }] })] },
    ]
    const { url } = await gatewayWith({ routes })
    expect(await statuses(`${url}/a`, 3)).toEqual([200, 200, 429])
    expect((await ask(`${url}/b`)).headers).toMatchObject({ 'x-ratelimit-remaining': '4' })
  })

  it('can be combined: all limits apply and all are in the headers', async () => {
    const { url: uri } = await echoUpstream()
    const { url } = await gatewayWith({
      rules,
      routes: [
        {
          id: 'one',
          uri,
          filters: ['RateLimiter=gold', oneAnHour({ id: 'extra' }), limiter({ capacity: 9, window: '1h' })],
        },
      ],
    })
    expect((await ask(url)).headers).toMatchObject({
      'ratelimit-policy': '"gold.3-per-1h";q=3;w=3600, "extra.1-per-1h";q=1;w=3600, "one-2.9-per-1h";q=9;w=3600',
      'x-ratelimit-remaining': '0',
    })
    const rejection = await ask(url)
    expect(JSON.parse(rejection.body)['violated-policies']).toEqual(['extra.1-per-1h'])
    expect(rejection.headers).toMatchObject({
      'ratelimit-policy': '"gold.3-per-1h";q=3;w=3600, "extra.1-per-1h";q=1;w=3600',
      'x-ratelimit-limit': '1',
    })
  })
})

describe('the default rule set', () => {
  const limited = async (filters: unknown[], ratelimit: object) => {
    const { url: uri } = await echoUpstream()
    const { url, running } = await gatewayWith({
      rules,
      ratelimit,
      routes: [
        { id: 'own', uri, predicates: ['Path=/own/**'], filters },
        { id: 'shop', uri, predicates: ['Path=/shop/**'] },
      ],
    })
    return { shop: await statuses(`${url}/shop/x`, 3), unlimited: running.unlimitedRoutes }
  }

  it.each([
    ['limits routes where none says it itself', [], {}, [200, 200, 429], []],
    ['leaves it to the routes where one does', [oneAnHour()], {}, [200, 200, 200], ['shop']],
    ['limits those that do not, if asked to', [oneAnHour()], { filterEnabled: true }, [200, 200, 429], []],
    ['limits none, if asked not to', [], { filterEnabled: false }, [200, 200, 200], ['own', 'shop']],
    ['limits what it is for', [], { includePatterns: ['/own/**'] }, [200, 200, 200], []],
    ['leaves out what it is not for', [], { excludePatterns: ['/shop/*'] }, [200, 200, 200], []],
    ['is the one that is configured', [], { defaultRuleSetId: 'gold' }, [200, 200, 200], []],
  ])('%s', async (_, filters, ratelimit, shop, unlimited) => {
    expect(await limited(filters, ratelimit)).toEqual({ shop, unlimited })
  })

  it('is the only rule set of the file, even if routes have limits', async () => {
    const { url: uri } = await echoUpstream()
    const { url } = await gatewayWith({
      rules: { id: 'mine', rules: [{ id: 'each', bands: [{ capacity: 1, window: '1h' }] }] },
      ratelimit: { filterEnabled: true },
      routes: [
        { id: 'own', uri, predicates: ['Path=/own'], filters: [oneAnHour()] },
        { id: 'rest', uri },
      ],
    })
    expect(await statuses(`${url}/x`, 2)).toEqual([200, 429])
    expect(await statuses(`${url}/own`, 2)).toEqual([200, 429])
  })

  it('applies to checks that name no rule set, even if routes have limits', async () => {
    const { url: uri } = await echoUpstream()
    const [, onlyOne] = rules.ruleSets
    const { running } = await gatewayWith({ routes: [{ id: 'own', uri, filters: [oneAnHour()] }], rules: onlyOne })
    expect(await running.gate.check({ path: '/shop/a' })).toMatchObject({ ruleSetId: 'default', ruleId: 'each' })
    const named = { ...onlyOne, id: 'shop' }
    const other = await gatewayWith({ routes: [{ id: 'own', uri, filters: [oneAnHour()] }], rules: named })
    expect(await other.running.gate.check({ path: '/shop/a' })).toMatchObject({ ruleSetId: 'shop', ruleId: 'each' })
    const none = await gatewayWith({ routes: [{ id: 'own', uri, filters: [oneAnHour()] }] })
    expect(await none.running.gate.check({})).toMatchObject({ reason: 'NO_RULE_SET' })
  })

  it('sees the path that the client sent', async () => {
    const { url: uri } = await echoUpstream()
    const { url } = await gatewayWith({ rules, routes: [{ id: 'shop', uri, filters: ['StripPrefix=1'] }] })
    expect((JSON.parse((await ask(`${url}/shop/x`)).body) as Echo).url).toBe('/x')
    expect(await statuses(`${url}/shop/x`, 2)).toEqual([200, 429])
  })
})

describe('response headers', () => {
  it.each([
    ['both', true, true],
    ['standard', true, false],
    ['legacy', false, true],
    [false, false, false],
  ])('with headers: %s', async (headers, hasStandard, hasLegacy) => {
    const { url } = await gatewayTo(await echoUpstream(), {
      rules: { id: 'x', rules: [{ id: 'y', bands: [{ capacity: 9, window: '1h' }] }] },
      ratelimit: { headers },
    })
    const reported = (await ask(url)).headers
    expect(['ratelimit' in reported, 'x-ratelimit-limit' in reported]).toEqual([hasStandard, hasLegacy])
  })

  it("contain the gateway's limits once, not those of the upstream", async () => {
    const target = await upstream((_, response) =>
      response.writeHead(200, { 'X-RateLimit-Limit': '7', RateLimit: '"x";r=1' }).end(),
    )
    const limited = await gatewayTo(target, {
      rules: { id: 'x', rules: [{ id: 'y', bands: [{ capacity: 9, window: '1h' }] }] },
    })
    expect((await ask(limited.url)).headers['x-ratelimit-limit']).toBe('9')
    const open = await gatewayTo(target)
    expect((await ask(open.url)).headers).toMatchObject({ 'x-ratelimit-limit': '7', ratelimit: '"x";r=1' })
  })
})

describe('a rejected upload', () => {
  const rejecting = async () => {
    let uploads = 0
    const target = await upstream((message, response) => {
      if (message.method === 'POST') uploads += 1
      message.resume().on('end', () => response.end())
    })
    const gateway = await gatewayWith({ routes: [{ id: 'one', uri: target.url, filters: [oneAnHour()] }] })
    await ask(gateway.url)
    return { ...gateway, uploads: () => uploads }
  }

  it('gets its 429 without its body being read', async () => {
    const { url, running, uploads } = await rejecting()
    const connected = once(running.server, 'connection') as Promise<[Socket]>
    const outgoing = request(url, { method: 'POST', agent: false, headers: { 'Content-Length': 2 ** 30 } })
    outgoing.on('error', () => {})
    const chunk = Buffer.alloc(2 ** 20)
    const fill = (): void => {
      while (!outgoing.destroyed && outgoing.write(chunk)) {}
    }
    outgoing.on('drain', fill)
    fill()
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
    expect(await answerOf(response)).toMatchObject({ status: 429, headers: { connection: 'close' } })
    expect(response.headers).toHaveProperty('retry-after')
    const [socket] = await connected
    if (!socket.destroyed) await once(socket, 'close')
    expect(socket.bytesRead).toBeLessThan(2 ** 20)
    expect(uploads()).toBe(0)
  })

  it('of unknown length gets its 429 as well', async () => {
    const { port } = await rejecting()
    const socket = connect(port, '127.0.0.1')
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n')
    const [received] = await once(socket, 'data')
    expect(String(received)).toMatch(/^HTTP\/1\.1 429 /)
    await once(socket.resume(), 'close')
  })

  it('never gets a 100', async () => {
    const { port, uploads } = await rejecting()
    const received = await raw(port, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n')
    expect(received).toMatch(/^HTTP\/1\.1 429 /)
    expect(received).not.toContain('100 Continue')
    expect(uploads()).toBe(0)
  })

  it('that is small keeps its connection', async () => {
    const { port } = await rejecting()
    const small = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc'
    const received = await raw(port, `${small}${small}`, (text) => text.split('HTTP/1.1 429').length === 3)
    expect(received.match(/HTTP\/1\.1 429/g)).toHaveLength(2)
  })
})

describe('a delayed request', () => {
  /** One request is allowed at once, one more is delayed for an hour, and a third is rejected. */
  const holding = async () => {
    const { url: uri } = await echoUpstream()
    const gateway = await gatewayWith({
      routes: [
        {
          id: 'slow',
          uri,
          filters: [limiter({ algorithm: 'LEAKY_BUCKET', capacity: 2, refillTokens: 1, window: '1h' })],
        },
      ],
    })
    expect(await statuses(gateway.url, 1)).toEqual([200])
    const waiting = (count: number) =>
      eventually(`${count} requests are delayed`, async () => (await gateway.running.gate.health()).waiting === count)
    return { ...gateway, waiting }
  }

  it('is refunded if its client disconnects', async () => {
    const { url, waiting } = await holding()
    const leave = () => {
      const outgoing = request(url, { agent: false }).end()
      outgoing.on('error', () => {})
      return outgoing
    }
    const first = leave()
    await waiting(1)
    expect(await statuses(url, 1)).toEqual([429])
    first.destroy()
    await waiting(0)
    // If the slot were still taken, this request would be rejected at once.
    const second = leave()
    await waiting(1)
    second.destroy()
    await waiting(0)
  })

  it('gets 503 if the gateway stops before its turn', async () => {
    const { url, waiting, running } = await holding()
    const held = ask(url)
    await waiting(1)
    const closed = running.close()
    expect(await held).toMatchObject({ status: 503, headers: { 'retry-after': '1', connection: 'close' } })
    await closed
  })
})
