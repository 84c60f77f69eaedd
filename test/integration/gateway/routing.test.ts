/** Route matching, filters and forwarded headers, seen from both ends of real connections. */
import { describe, expect, it } from 'vitest'
import {
  ask,
  type Echo,
  echoUpstream,
  gatewayTo,
  gatewayWith,
  raw,
  sent,
  upstream,
} from '../../fixtures/test-gateway.js'

/** True if a route with this predicate matches the request. */
async function takes(predicate: unknown, path: string, options: Parameters<typeof ask>[1] = {}, ratelimit = {}) {
  const { url } = await echoUpstream()
  const gateway = await gatewayWith({ routes: [{ id: 'one', uri: url, predicates: [predicate] }], ratelimit })
  const { status } = await ask(`${gateway.url}${path}`, options)
  expect([200, 404]).toContain(status)
  return status === 200
}

describe('predicates', () => {
  it.each([
    ['Path=/api/**', '/api/users/7', '/apis'],
    ['Path=/a, /b/{id}', '/b/7', '/b/7/x'],
    [{ name: 'Path', args: { patterns: ['/a', '/b/*'] } }, '/b/c', '/c'],
    [{ name: 'Path', args: { pattern: '/a/?' } }, '/a/b', '/a/bc'],
    ['Path=/api/**', '//%61pi/x/../y/', '/x/../y'],
    ['Query=green', '/?green', '/?red=green'],
    ['Query=red, gree.', '/?red=green', '/?red=greet-ings'],
    [{ name: 'Query', args: { param: 'red', regexp: 'gree.' } }, '/?a=b&red=gree%6e', '/'],
    [{ name: 'Query', args: { name: 'red' } }, '/?red=', '/?Red='],
  ])('%j match %s and not %s', async (predicate, taken, left) => {
    expect(await takes(predicate, taken)).toBe(true)
    expect(await takes(predicate, left)).toBe(false)
  })

  it.each([
    'Method=GET,put',
    { name: 'Method', args: { methods: ['GET', 'PUT'] } },
    { name: 'Method', args: { method: 'GET,PUT' } },
  ])('%j match these methods and no others', async (predicate) => {
    expect(await takes(predicate, '/', { method: 'PUT' })).toBe(true)
    expect(await takes(predicate, '/', { method: 'POST' })).toBe(false)
  })

  it.each([
    ['Host=**.example.org', 'a.b.Example.org:8080', 'example.com'],
    ['Host=**.example.org', 'example.org', 'badexample.org'],
    ['Host=*.example.org,localhost', 'a.example.org', 'a.b.example.org'],
    [{ name: 'Host', args: { patterns: ['{sub}.example.org'] } }, 'a.example.org', 'example.org'],
  ])('%j match the host %s and not %s', async (predicate, taken, left) => {
    expect(await takes(predicate, '/', { headers: { Host: taken } })).toBe(true)
    expect(await takes(predicate, '/', { headers: { Host: left } })).toBe(false)
  })

  it.each([
    ['Header=X-Id, \\d+', '17', '17a'],
    ['Header=X-Id, [a-z]{1,3}', 'abc', 'abcd'],
    [{ name: 'Header', args: { header: 'x-id', regexp: '\\d{2,}' } }, '17', '1'],
    [{ name: 'Header', args: { name: 'X-ID' } }, 'anything', undefined],
  ])('%j match the header %s and not %s', async (predicate, taken, left) => {
    expect(await takes(predicate, '/', { headers: { 'X-Id': taken } })).toBe(true)
    expect(await takes(predicate, '/', left === undefined ? {} : { headers: { 'X-Id': left } })).toBe(false)
  })

  it.each([
    ['RemoteAddr=127.0.0.0/8, 10.0.0.1', 'RemoteAddr=10.0.0.0/8'],
    [
      { name: 'RemoteAddr', args: { sources: ['127.0.0.1'] } },
      { name: 'RemoteAddr', args: { source: '127.0.0.2' } },
    ],
  ])('%j matches connections from that address, %j does not', async (taken, left) => {
    expect(await takes(taken, '/')).toBe(true)
    expect(await takes(left, '/')).toBe(false)
  })

  it('RemoteAddr uses forwarded addresses of trusted proxies only', async () => {
    const headers = { 'X-Forwarded-For': '203.0.113.9, 192.0.2.1' }
    const predicate = 'RemoteAddr=192.0.2.0/24'
    expect(await takes(predicate, '/', { headers })).toBe(false)
    expect(await takes(predicate, '/', { headers }, { trustedProxies: ['127.0.0.1'] })).toBe(true)
  })

  it('must all match, and the first matching route gets the request', async () => {
    const [a, b] = [
      await upstream((_, response) => response.end('a')),
      await upstream((_, response) => response.end('b')),
    ]
    const { url } = await gatewayWith({
      routes: [
        { id: 'a', uri: a.url, predicates: ['Path=/x/**', 'Method=POST'] },
        { id: 'b', uri: b.url, predicates: ['Path=/x/**'] },
      ],
    })
    expect((await ask(`${url}/x/1`, { method: 'POST' })).body).toBe('a')
    expect((await ask(`${url}/x/1`)).body).toBe('b')
    expect(await ask(`${url}/y`)).toMatchObject({
      status: 404,
      headers: { 'content-type': 'application/problem+json' },
      body: '{"type":"about:blank","title":"Not Found","status":404,"detail":"No route of this gateway matches the request."}\n',
    })
  })
})

describe('filters', () => {
  async function through(filters: unknown[], path = '/', options: Parameters<typeof ask>[1] = {}) {
    const target = await upstream((message, response) => {
      response.setHeader('X-Up', ['1', '2'])
      response.end(JSON.stringify({ url: message.url, rawHeaders: message.rawHeaders }))
    })
    const { url } = await gatewayWith({ routes: [{ id: 'one', uri: target.url, filters }] })
    const answer = await ask(`${url}${path}`, options)
    return { ...answer, echo: JSON.parse(answer.body) as Echo }
  }
  /** The same filter in both notations. */
  const both = (name: string, short: string, args: object): [unknown, unknown][] => [
    [`${name}=${short}`, { name, args }] as [unknown, unknown],
  ]

  it.each([...both('StripPrefix', '2', { parts: 2 })])(
    '%j and %j strip path segments and keep the query',
    async (...spellings) => {
      for (const filter of spellings) {
        const { echo } = await through([filter], '/a/b/c/?x=%2F&y')
        expect(echo.url).toBe('/c/?x=%2F&y')
      }
    },
  )

  it.each([
    ...both('RewritePath', '/old/(?<rest>.*), /new/$\\{rest}', {
      regexp: '/old/(?<rest>.*)',
      replacement: '/new/$\\{rest}',
    }),
  ])('%j and %j rewrite the path', async (...spellings) => {
    for (const filter of spellings) expect((await through([filter], '/old/a?b')).echo.url).toBe('/new/a?b')
  })

  it.each([...both('AddRequestHeader', 'X-A, b, c', { name: 'X-A', value: 'b, c' })])(
    '%j and %j add a request header',
    async (...spellings) => {
      for (const filter of spellings)
        expect(sent((await through([filter], '/', { headers: { 'x-a': 'own' } })).echo, 'X-A')).toEqual(['own', 'b, c'])
    },
  )

  it.each([...both('SetRequestHeader', 'X-A, b', { name: 'X-A', value: 'b' })])(
    '%j and %j replace a request header',
    async (...spellings) => {
      for (const filter of spellings)
        expect(sent((await through([filter], '/', { headers: { 'x-a': 'own' } })).echo, 'X-A')).toEqual(['b'])
    },
  )

  it.each([...both('RemoveRequestHeader', 'X-A', { name: 'X-A' })])(
    '%j and %j remove a request header',
    async (...spellings) => {
      for (const filter of spellings)
        expect(sent((await through([filter], '/', { headers: { 'x-a': 'own' } })).echo, 'X-A')).toEqual([])
    },
  )

  it.each([
    ['AddResponseHeader=X-Up, 3', '1, 2, 3'],
    [{ name: 'AddResponseHeader', args: { name: 'X-Up', value: 3 } }, '1, 2, 3'],
    ['SetResponseHeader=x-up, 3', '3'],
    [{ name: 'SetResponseHeader', args: { name: 'x-up', value: '3' } }, '3'],
    ['RemoveResponseHeader=X-UP', undefined],
    [{ name: 'RemoveResponseHeader', args: { name: 'X-UP' } }, undefined],
  ])('%j changes a response header to %s', async (filter, expected) => {
    expect((await through([filter])).headers['x-up']).toBe(expected)
  })

  it('are applied in order', async () => {
    const { echo } = await through(
      [
        'StripPrefix=1',
        'RewritePath=^/b, /c',
        'AddRequestHeader=X-A, 1',
        'RemoveRequestHeader=X-A',
        'AddRequestHeader=X-A, 2',
      ],
      '/a/b/d',
    )
    expect(echo.url).toBe('/c/d')
    expect(sent(echo, 'X-A')).toEqual(['2'])
  })

  it("set Host to the upstream's own name, or keep the client's Host if configured", async () => {
    const headers = { Host: 'shop.example.org' }
    expect(sent((await through([], '/', { headers })).echo, 'Host')[0]).toMatch(/^127\.0\.0\.1:\d+$/)
    expect(sent((await through(['PreserveHostHeader'], '/', { headers })).echo, 'Host')).toEqual(['shop.example.org'])
    expect(sent((await through(['SetRequestHeader=Host, a.b'], '/', { headers })).echo, 'Host')).toEqual(['a.b'])
  })
})

describe('the path sent to the upstream', () => {
  it.each([
    ['/a//b/', '/a/b/'],
    ['/%61?x=/../y', '/a?x=/../y'],
    ['//x/login', '/x/login'],
    ['/a\\..\\login', '/login'],
    ['/%40me/Case', '/%40me/Case'],
    ['/group%2Fproject;v=1', '/group%2Fproject;v=1'],
    ['/a/./b/../c', '/a/c'],
    ['/a/%2E%2e/%2e/c/..', '/'],
    ['/../../a', '/a'],
    ['http://other.example.org/x?y', '/x?y'],
    ['http://other.example.org', '/'],
  ])('of %s is %s', async (target, expected) => {
    const { port } = await gatewayTo(await echoUpstream())
    const received = await raw(port, `GET ${target} HTTP/1.1\r\nHost: a.example.org\r\nConnection: close\r\n\r\n`)
    const echo = JSON.parse(received.slice(received.indexOf('{'), received.lastIndexOf('}') + 1)) as Echo
    expect(echo.url).toBe(expected)
    expect(sent(echo, 'X-Forwarded-Host')).toEqual([target.startsWith('http') ? 'other.example.org' : 'a.example.org'])
  })
})

describe('an ambiguous path', () => {
  const gatewayWithRoutes = async () => {
    const { url: uri } = await echoUpstream()
    return gatewayWith({
      routes: [
        { id: 'admin', uri, predicates: ['Path=/admin/**'] },
        { id: 'api', uri, predicates: ['Path=/api/**'], filters: ['StripPrefix=1'] },
        { id: 'rest', uri, filters: ['RewritePath=/old/(.*), /new/../$1'] },
      ],
    })
  }
  const target = async (port: number, path: string): Promise<string> => {
    const received = await raw(port, `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
    if (!received.startsWith('HTTP/1.1 200')) return received.slice(9, 12)
    return (JSON.parse(received.slice(received.indexOf('{'), received.lastIndexOf('}') + 1)) as Echo).url
  }

  it.each([
    ['a dot segment behind %2F', '/api/x%2F..%2F..%2Fadmin', '400'],
    ['a dot segment behind %5c', '/api/..%5cadmin', '400'],
    ['a dot segment with parameters', '/api/..;/admin', '400'],
    ['%2F that leads to another route', '/admin%2Fusers', '400'],
    ['parameters that lead to another route', '/admin;x/users', '400'],
    ['%00', '/api/a%00b', '400'],
    ['%2F that leads to the same route', '/api/group%2Fproject', '/group%2Fproject'],
  ])('with %s: %s is %s', async (_, path, expected) => {
    const { port } = await gatewayWithRoutes()
    expect(await target(port, path)).toBe(expected)
  })

  it.each([
    ['/old/a', '/a'],
    ['/old//../b', '/b'],
    ['/api/../api//x', '/x'],
    ['/api', '/'],
  ])('is normalized again after a rewrite: %s is %s', async (path, expected) => {
    const { port } = await gatewayWithRoutes()
    expect(await target(port, path)).toBe(expected)
  })
})

describe('forwarding headers sent to the upstream', () => {
  const spoofed = {
    Host: 'shop.example.org:8443',
    'X-Forwarded-For': '203.0.113.9',
    'X-Forwarded-Proto': 'https',
    'X-Forwarded-Host': 'evil.example.org',
    'X-Forwarded-Port': '443',
    Forwarded: 'for=203.0.113.9;proto=https',
    'X-Real-IP': '203.0.113.9',
  }
  async function echoWith(ratelimit: object): Promise<Echo> {
    const { url } = await gatewayTo(await echoUpstream(), { ratelimit })
    return JSON.parse((await ask(url, { headers: spoofed })).body) as Echo
  }
  const names = ['X-Forwarded-For', 'X-Forwarded-Proto', 'X-Forwarded-Host', 'X-Forwarded-Port', 'Forwarded']

  it('contain the values of the gateway, whatever an untrusted client sends', async () => {
    const echo = await echoWith({ clientIpHeader: 'X-Real-IP' })
    expect(names.map((name) => sent(echo, name))).toEqual([
      ['127.0.0.1'],
      ['http'],
      ['shop.example.org:8443'],
      ['8443'],
      ['for=127.0.0.1;host="shop.example.org:8443";proto=http'],
    ])
    expect(sent(echo, 'X-Real-IP')).toEqual([])
  })

  it('contain the client reported by a trusted proxy, and the proxy', async () => {
    const echo = await echoWith({ trustedProxies: ['127.0.0.0/8'], clientIpHeader: 'X-Real-IP' })
    expect(names.map((name) => sent(echo, name))).toEqual([
      ['203.0.113.9, 127.0.0.1'],
      ['https'],
      ['evil.example.org'],
      ['443'],
      ['for=203.0.113.9;proto=https, for=127.0.0.1;host="shop.example.org:8443";proto=http'],
    ])
    expect(sent(echo, 'X-Real-IP')).toEqual(['203.0.113.9'])
  })
})

describe('forwarding headers of a client', () => {
  const believed = {
    ...{
      'X-Real-IP': 'a',
      'True-Client-IP': 'a',
      'CF-Connecting-IP': 'a',
      'X-Client-IP': 'a',
      'Fastly-Client-IP': 'a',
    },
    ...{ 'X-Cluster-Client-IP': 'a', 'X-Forwarded-Prefix': 'a', 'X-Forwarded-Server': 'a', 'X-Forwarded-Scheme': 'a' },
    ...{ 'X-Forwarded-Ssl': 'on', 'Front-End-Https': 'on', 'X-Original-URL': '/admin', 'X-Rewrite-URL': '/admin' },
    ...{ 'X-Original-Host': 'a', 'X-Host': 'a', 'X-HTTP-Method-Override': 'DELETE', X_Forwarded_For: 'a' },
    ...{ x_real_ip: 'a', 'X.Real.IP': 'a', X_User_Id: 'a', 'X_API-Key': 'a', X_Own_Address: 'a', 'X-Own-Address': 'a' },
  }
  const harmless = { 'X-User-Id': 'u', 'X-API-Key': 'k', X_Other: 'o', 'X-Forward': 'f' }
  async function passed(ratelimit: object): Promise<string[]> {
    const { url } = await gatewayTo(await echoUpstream(), { ratelimit })
    const echo = JSON.parse((await ask(url, { headers: { ...believed, ...harmless, Proxy: 'a' } })).body) as Echo
    const names = [...Object.keys(believed), ...Object.keys(harmless), 'Proxy']
    return names.filter((name) => sent(echo, name).length > 0)
  }

  it('that upstreams trust are removed, in every spelling', async () => {
    const identities = { userIdHeader: 'X-User-Id', apiKeyHeader: 'X-API-Key' }
    expect(await passed({ clientIpHeader: 'X-Own-Address', ...identities })).toEqual(Object.keys(harmless))
  })

  it('are kept if it is a trusted proxy', async () => {
    expect(await passed({ trustedProxies: 1 })).toEqual([...Object.keys(believed), ...Object.keys(harmless)])
  })

  it.each([{}, { trustedProxies: 1 }])(
    'that spell the framing with underscores are removed with %o',
    async (ratelimit) => {
      const { url } = await gatewayTo(await echoUpstream(), { ratelimit })
      const headers = { Content_Length: '5', Transfer_Encoding: 'chunked' }
      const echo = JSON.parse((await ask(url, { headers })).body) as Echo
      expect(Object.keys(headers).filter((name) => sent(echo, name).length > 0)).toEqual([])
    },
  )

  it('are dropped if a trusted proxy forwards an unterminated quoted string', async () => {
    const { url } = await gatewayTo(await echoUpstream(), { ratelimit: { trustedProxies: 'loopback' } })
    const headers = { Forwarded: 'for=1.1.1.1;host="', Host: 'a,b;c=d' }
    const echo = JSON.parse((await ask(url, { headers })).body) as Echo
    expect(sent(echo, 'Forwarded')).toEqual(['for=127.0.0.1;host="a,b;c=d";proto=http'])
  })
})

describe('forwarding headers of several requests on one connection', () => {
  const hosts = ['a.example.org', 'a.example.org', 'b.example.org:81', `${'c'.repeat(300)}.org`, 'a.example.org']
  async function echoes(ratelimit: object, headersOf: (index: number) => string): Promise<Echo[]> {
    const { port } = await gatewayTo(await echoUpstream(), { ratelimit })
    const requests = hosts.map((host, index) => {
      const last = index === hosts.length - 1 ? 'Connection: close\r\n' : ''
      return `GET /${index} HTTP/1.1\r\nHost: ${host}\r\n${headersOf(index)}${last}\r\n`
    })
    const answers = await raw(port, requests.join(''))
    const bodies = answers.split(/HTTP\/1\.1 200[^{]*/).slice(1)
    return bodies.map((body) => JSON.parse(body) as Echo)
  }

  it('name the host of each request', async () => {
    const found = await echoes({}, () => 'X-Forwarded-For: 203.0.113.9\r\n')
    expect(found.map((echo) => sent(echo, 'X-Forwarded-Host'))).toEqual(hosts.map((host) => [host]))
    expect(found.map((echo) => sent(echo, 'X-Forwarded-For'))).toEqual(hosts.map(() => ['127.0.0.1']))
    expect(sent(found[1] as Echo, 'Forwarded')).toEqual(['for=127.0.0.1;host=a.example.org;proto=http'])
    expect(sent(found[2] as Echo, 'Forwarded')).toEqual(['for=127.0.0.1;host="b.example.org:81";proto=http'])
    expect(sent(found[2] as Echo, 'X-Forwarded-Port')).toEqual(['81'])
  })

  it('name the client of each request behind a trusted proxy', async () => {
    const found = await echoes({ trustedProxies: 1 }, (index) => `X-Forwarded-For: 203.0.113.${index}\r\n`)
    const clients = hosts.map((_, index) => [`203.0.113.${index}, 127.0.0.1`])
    expect(found.map((echo) => sent(echo, 'X-Forwarded-For'))).toEqual(clients)
  })
})

describe('hop-by-hop headers', () => {
  it('do not reach the upstream, including those named by Connection', async () => {
    const { url } = await gatewayTo(await echoUpstream())
    const headers = {
      Connection: 'keep-alive, X-Own, Content-Length, X-Forwarded-For',
      'Keep-Alive': 'timeout=5',
      'X-Own': 'a',
      'X-Other': 'b',
      TE: 'trailers, deflate',
      'Proxy-Authorization': 'Basic c2VjcmV0',
      'Proxy-Connection': 'keep-alive',
    }
    const echo = JSON.parse((await ask(url, { method: 'POST', headers, body: 'x' })).body) as Echo
    const names = echo.rawHeaders.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase())
    for (const name of ['x-own', 'keep-alive', 'proxy-authorization', 'proxy-connection'])
      expect(names).not.toContain(name)
    expect(sent(echo, 'X-Other')).toEqual(['b'])
    expect(sent(echo, 'TE')).toEqual(['trailers'])
    expect(sent(echo, 'Connection')).toEqual(['keep-alive'])
    expect(sent(echo, 'X-Forwarded-For')).toEqual(['127.0.0.1'])
    expect(echo.body).toBe('x')
  })

  it('do not reach the client either', async () => {
    const { url } = await gatewayTo(
      await upstream((_, response) => {
        response.writeHead(200, [
          'Connection',
          'X-Own, close',
          'X-Own',
          'a',
          'X-Other',
          'b',
          'Proxy-Authenticate',
          'Basic',
        ])
        response.end('x')
      }),
    )
    const { headers, body } = await ask(url)
    expect(headers).toMatchObject({ 'x-other': 'b' })
    for (const name of ['x-own', 'proxy-authenticate']) expect(headers).not.toHaveProperty(name)
    expect(body).toBe('x')
  })

  it('are removed by name only: all other headers arrive unchanged, in order and byte for byte', async () => {
    const { port } = await gatewayTo(
      await upstream((message, response) => {
        response.writeHead(200, [
          'Set-Cookie',
          'a=1',
          'Set-Cookie',
          'b=2',
          'x-latin',
          'é',
          'X-Back',
          message.headers['x-latin'] as string,
        ])
        response.end()
      }),
    )
    const received = await raw(port, 'GET / HTTP/1.1\r\nHost: a\r\nx-LATIN: \xe9\xff\r\nConnection: close\r\n\r\n')
    expect(received).toContain('\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nx-latin: \xe9\r\nX-Back: \xe9\xff\r\n')
  })
})
