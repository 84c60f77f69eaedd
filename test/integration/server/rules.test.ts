import { describe, expect, it, onTestFinished } from 'vitest'
import { redisRuleStore } from '../../../src/rules/redis/redis-rule-store.js'
import { temporaryRules } from '../../fixtures/temporary-rules.js'
import { serverWith, type TestServer } from '../../fixtures/test-server.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'

const band = { label: 'minute', capacity: 10, window: '1m' }
const set = '/api/rule-sets/shop'
const rules = `${set}/rules`

/** A server with editable rules and an empty rule set named shop. */
async function shop(): Promise<TestServer & { readonly lines: object[] }> {
  const lines: object[] = []
  const log = (message: string, fields?: object) => lines.push({ message, ...fields })
  const logger = { info: log, warn: log, error: log }
  const server = await serverWith({ rules: temporaryRules(), logger })
  expect((await server.ask('PUT', set, { rules: [] })).status).toBe(201)
  return { ...server, lines }
}

describe('rule sets', () => {
  it('are created, read, replaced and deleted; each version has its ETag', async () => {
    const { ask } = await serverWith({ rules: temporaryRules() })
    const created = await ask('PUT', set, { description: 'All of it.', rules: [{ id: 'a', bands: [band] }] })
    expect(created.status).toBe(201)
    expect(created.headers.get('location')).toBe('/api/rule-sets/shop')
    expect(created.headers.get('etag')).toBe('"1"')
    expect(created.body).toMatchObject({ id: 'shop', version: 1, rules: [{ id: 'a', version: 1 }] })
    const read = await ask('GET', set)
    expect(read).toMatchObject({ status: 200, body: created.body })
    // A response body can be sent back unchanged.
    const replaced = await ask('PUT', set, { ...read.body, description: 'Less.' }, { 'If-Match': '"1"' })
    expect(replaced).toMatchObject({ status: 200, body: { version: 2, description: 'Less.', rules: [{ version: 1 }] } })
    expect((await ask('DELETE', set, undefined, { 'If-Match': '"1"' })).status).toBe(412)
    expect((await ask('DELETE', set, undefined, { 'If-Match': '"2"' })).status).toBe(204)
    expect((await ask('GET', set)).status).toBe(404)
    expect((await ask('DELETE', set)).status).toBe(404)
  })

  it('are listed by id, in pages, and found by text in id or description', async () => {
    const { ask } = await serverWith({ rules: temporaryRules() })
    for (const id of ['c', 'a', 'b', 'd', 'e'])
      await ask('PUT', `/api/rule-sets/${id}`, { description: `the ${id === 'd' ? 'Odd' : 'even'} one`, rules: [] })
    const seen: string[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page = await ask('GET', `/api/rule-sets?limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`)
      seen.push(page.body.ruleSets.map(({ id }: { id: string }) => id).join(''))
      cursor = page.body.cursor
    }
    expect(seen).toEqual(['ab', 'cd', 'e'])
    const found = await ask('GET', '/api/rule-sets?q=odd&limit=1')
    expect(found.body.ruleSets).toMatchObject([{ id: 'd' }])
  })

  it('keep a history of changes and their authors, newest first', async () => {
    const { ask } = await shop()
    await ask('POST', rules, { id: 'a', bands: [band] })
    await ask('DELETE', `${rules}/a`)
    const { status, body } = await ask('GET', `${set}/history?limit=2`)
    expect(status).toBe(200)
    expect(body.changes).toMatchObject([
      { action: 'DELETE_RULE', ruleSetId: 'shop', ruleId: 'a', by: '127.0.0.1', after: null },
      { action: 'PUT_RULE', ruleId: 'a', before: null, after: { id: 'a', version: 1 } },
    ])
    const older = await ask('GET', `${set}/history?cursor=${body.cursor}`)
    expect(older.body).toMatchObject({ changes: [{ action: 'PUT_SET' }], cursor: null })
  })

  it('have no history if they never existed: 404. Deleted ones keep theirs', async () => {
    const { ask } = await shop()
    expect(await ask('GET', '/api/rule-sets/nothing/history')).toMatchObject({
      status: 404,
      body: { detail: 'Rule set "nothing" does not exist.' },
    })
    await ask('DELETE', set)
    expect((await ask('GET', `${set}/history?limit=1`)).body.changes).toMatchObject([{ action: 'DELETE_SET' }])
  })
})

describe('rules', () => {
  it('are created once: 201 with their location, then 409', async () => {
    const { ask } = await shop()
    const created = await ask('POST', rules, { id: 'a:b', bands: [band] })
    expect(created).toMatchObject({ status: 201, body: { id: 'a:b', version: 1, bands: [band] } })
    expect(created.headers.get('location')).toBe('/api/rule-sets/shop/rules/a%3Ab')
    expect((await ask('GET', created.headers.get('location') as string)).body).toEqual(created.body)
    const again = await ask('POST', rules, { id: 'a:b', bands: [{ capacity: 1, window: '1s' }] })
    expect(again).toMatchObject({ status: 409, body: { code: 'FLUXGATE_ALREADY_EXISTS' } })
    expect((await ask('GET', `${rules}/a:b`)).body).toEqual(created.body)
  })

  it('are in effect when the response arrives', async () => {
    const { ask } = await shop()
    const check = { ruleSetId: 'shop', clientIp: '203.0.113.7', path: '/cart' }
    expect((await ask('POST', '/api/ratelimit/check', check)).body.reason).toBe('NO_RULE')
    await ask('POST', rules, { id: 'a', bands: [{ capacity: 1, window: '1h' }] })
    expect((await ask('POST', '/api/ratelimit/check', check)).body).toMatchObject({ allowed: true, limit: 1 })
    expect((await ask('POST', '/api/ratelimit/check', check)).body.allowed).toBe(false)
    await ask('PATCH', `${rules}/a`, { enabled: false })
    expect((await ask('POST', '/api/ratelimit/check', check)).body.reason).toBe('NO_RULE')
    await ask('DELETE', `${rules}/a`)
    expect((await ask('GET', `${rules}/a`)).status).toBe(404)
  })

  it('are not overwritten by an editor that has seen another version, and the conflict loses nothing', async () => {
    const { ask } = await shop()
    await ask('PUT', `${rules}/a`, { bands: [band] })
    const first = await ask('PUT', `${rules}/a`, { name: 'one', bands: [band] }, { 'If-Match': '"1"' })
    expect(first.headers.get('etag')).toBe('"2"')
    const second = await ask('PUT', `${rules}/a`, { name: 'two', bands: [band] }, { 'If-Match': '"1"' })
    expect(second).toMatchObject({ status: 412, body: { code: 'FLUXGATE_RULES_CONFLICT' } })
    expect((await ask('GET', `${rules}/a`)).body).toMatchObject({ name: 'one', version: 2 })
    for (const method of ['PATCH', 'DELETE'])
      expect((await ask(method, `${rules}/a`, method === 'PATCH' ? {} : undefined, { 'If-Match': '"1"' })).status).toBe(
        412,
      )
    expect((await ask('GET', `${rules}/a`)).body.version).toBe(2)
  })

  it.each([
    [{ 'If-Match': '*' }, 200],
    [{ 'If-Match': '"7", "1"' }, 200],
    [{ 'If-Match': '"7", "8"' }, 412],
    [{ 'If-Match': 'W/"1"' }, 412],
    [{ 'If-Match': '"x"' }, 412],
    [{ 'If-Match': '"0"' }, 412],
    [{ 'If-None-Match': '*' }, 412],
    [{ 'If-None-Match': '"1"' }, 412],
    [{ 'If-None-Match': '"7", W/"1"' }, 412],
    [{ 'If-None-Match': '"7", W/"8"' }, 200],
    [{ 'If-Match': '"1"', 'If-None-Match': '"1"' }, 412],
    [{ 'If-Match': '"1"', 'If-None-Match': '"2"' }, 200],
    [{ 'If-Match': '"2"', 'If-None-Match': '"2"' }, 412],
  ])('are put under the condition %j: %i', async (condition, status) => {
    const { ask } = await shop()
    await ask('PUT', `${rules}/a`, { bands: [band] })
    expect((await ask('PUT', `${rules}/a`, { name: 'x', bands: [band] }, condition)).status).toBe(status)
  })

  it('are created under If-None-Match: *, and not under If-Match: *', async () => {
    const { ask } = await shop()
    expect((await ask('PUT', `${rules}/a`, { bands: [band] }, { 'If-Match': '*' })).status).toBe(412)
    expect((await ask('PUT', `${rules}/a`, { bands: [band] }, { 'If-None-Match': '*' })).status).toBe(201)
  })

  it.each([
    undefined,
    { 'If-Match': '"1"' },
    { 'If-Match': '"1", "2"' },
    { 'If-Match': '*' },
    { 'If-None-Match': '*' },
    { 'If-None-Match': '"1"' },
  ])('that do not exist are 404 for PATCH and DELETE under the condition %j', async (condition) => {
    const { ask } = await shop()
    const missing = { status: 404, body: { code: 'FLUXGATE_NOT_FOUND' } }
    expect(await ask('PATCH', `${rules}/nobody`, { enabled: false }, condition)).toMatchObject(missing)
    expect(await ask('DELETE', `${rules}/nobody`, undefined, condition)).toMatchObject(missing)
    expect(await ask('DELETE', '/api/rule-sets/nobody', undefined, condition)).toMatchObject(missing)
    expect(await ask('PATCH', '/api/rule-sets/nobody/rules/a', {}, condition)).toMatchObject(missing)
  })

  it('are returned with algorithms as the OpenAPI document spells them', async () => {
    const { ask } = await shop()
    const body = { algorithm: 'fixed-window', bands: [{ ...band, algorithm: 'tokenBucket' }] }
    const canonical = { algorithm: 'FIXED_WINDOW', bands: [{ algorithm: 'TOKEN_BUCKET' }] }
    expect((await ask('PUT', `${rules}/a`, body)).body).toMatchObject(canonical)
    expect((await ask('GET', `${rules}/a`)).body).toMatchObject(canonical)
    expect((await ask('GET', `${rules}?q=a`)).body.rules).toContainEqual(
      expect.objectContaining({ algorithm: 'FIXED_WINDOW' }),
    )
    expect((await ask('GET', set)).body.rules).toContainEqual(expect.objectContaining({ algorithm: 'FIXED_WINDOW' }))
  })

  it('are not sent again to clients that have them', async () => {
    const { ask } = await shop()
    await ask('PUT', `${rules}/a`, { bands: [band] })
    const known = await ask('GET', `${rules}/a`, undefined, { 'If-None-Match': '"1"' })
    expect(known).toMatchObject({ status: 304, text: '' })
    expect(known.headers.get('etag')).toBe('"1"')
    expect((await ask('GET', `${rules}/a`, undefined, { 'If-None-Match': '"2"' })).status).toBe(200)
    expect((await ask('GET', set, undefined, { 'If-None-Match': 'W/"2"' })).status).toBe(304)
  })

  it('are patched: named members change, null removes, and attributes are kept', async () => {
    const { ask } = await shop()
    const attributes = '{"z":1,"a":{"ü":"\\ud83d\\ude00","__proto__":{"x":[1.5,null,true]}},"m":"<&>"}'
    await ask(
      'PUT',
      `${rules}/a`,
      `{"name":"one","description":"d","attributes":${attributes},"bands":[{"capacity":1,"window":"1s"}]}`,
    )
    const patched = await ask(
      'PATCH',
      `${rules}/a`,
      { name: 'two', description: null, bands: [band] },
      {
        'Content-Type': 'application/merge-patch+json',
      },
    )
    expect(patched.status).toBe(200)
    expect(patched.body).toMatchObject({ name: 'two', version: 2, bands: [band] })
    expect(patched.body).not.toHaveProperty('description')
    expect(patched.text).toContain(`"attributes":${attributes}`)
    const within = await ask('PATCH', `${rules}/a`, '{"attributes":{"a":{"__proto__":null},"n":2}}')
    expect(within.text).toContain('"attributes":{"z":1,"a":{"ü":"\\ud83d\\ude00"},"m":"<&>","n":2}')
  })

  it('return attributes byte for byte, whatever other clients write and edit', async () => {
    const redis = redisRuleStore(sharedRedis().uri, { prefix: freshPrefix() })
    onTestFinished(() => redis.close())
    const stores = [temporaryRules(), temporaryRules('rules.json', '[]'), redis]
    for (const store of stores) {
      const { ask } = await serverWith({ rules: store })
      await ask('PUT', set, { rules: [] })
      const attributes = '{"b": 1.0, "10": 12345678901234567890, "2": "\\u00e9", "a": 1e400}'
      const put = await ask('PUT', `${rules}/a`, `{"attributes": ${attributes}, "bands": [${JSON.stringify(band)}]}`)
      const kept = `"attributes":${attributes}`
      expect(put).toMatchObject({ status: 201, text: expect.stringContaining(kept) })
      expect((await ask('PATCH', `${rules}/a`, { name: 'new', priority: 3 })).text).toContain(kept)
      await ask('PUT', `${rules}/b`, { bands: [band] })
      const { text, headers } = await ask('GET', `${rules}/a`)
      expect(text).toContain(kept)
      const again = await ask('PUT', `${rules}/a`, text.replace('"new"', '"newer"'), {
        'If-Match': headers.get('ETag') ?? '',
      })
      expect(again).toMatchObject({ status: 200, text: expect.stringContaining(kept) })
      for (const path of [set, rules, '/api/rule-sets', `${set}/history?limit=1`])
        expect((await ask('GET', path)).text).toContain(kept)
      const within = await ask('PATCH', `${rules}/a`, '{"attributes":{"2":null,"b":{"c": 2.0}}}')
      expect(within.text).toContain('"attributes":{"b":{"c": 2.0},"10":12345678901234567890,"a":1e400}')
    }
  })

  it('are patched concurrently without lost updates', async () => {
    const { ask } = await shop()
    await ask('PUT', `${rules}/a`, { bands: [band] })
    const names = Array.from({ length: 12 }, (_, i) => `k${i}`)
    const answers = await Promise.all(names.map((name) => ask('PATCH', `${rules}/a`, { attributes: { [name]: 1 } })))
    expect(answers.map(({ status }) => status)).toEqual(names.map(() => 200))
    const { body } = await ask('GET', `${rules}/a`)
    expect(Object.keys(body.attributes).sort()).toEqual([...names].sort())
    expect(body.version).toBe(13)
  })

  it('are listed by priority, searched, filtered and paged', async () => {
    const { ask } = await shop()
    for (const [id, priority, enabled] of [
      ['a', 1, true],
      ['b', 9, true],
      ['cart', 5, false],
    ] as const)
      await ask('POST', rules, { id, priority, enabled, path: `/${id}/**`, bands: [band] })
    const ids = async (query: string) =>
      (await ask('GET', `${rules}${query}`)).body.rules.map(({ id }: { id: string }) => id)
    expect(await ids('')).toEqual(['b', 'cart', 'a'])
    expect(await ids('?q=CART')).toEqual(['cart'])
    expect(await ids('?enabled=false')).toEqual(['cart'])
    expect(await ids('?enabled=true')).toEqual(['b', 'a'])
    const page = await ask('GET', `${rules}?limit=2`)
    expect(await ids(`?limit=2&cursor=${page.body.cursor}`)).toEqual(['a'])
  })

  it.each([
    ['?limit=0', 'limit'],
    ['?limit=1001', 'limit'],
    ['?limit=two', 'limit'],
    ['?enabled=yes', 'enabled'],
    ['?colour=red', 'query'],
    ['?limit=1&limit=2', 'limit'],
    ['?q=%E0%A4%A', 'query'],
  ])('cannot be listed by %s', async (query, path) => {
    const { ask } = await shop()
    const { status, body } = await ask('GET', `${rules}${query}`)
    expect(status).toBe(400)
    expect(body.errors[0].path).toBe(path)
  })

  it('that are invalid are rejected with the path of each issue, and nothing changes', async () => {
    const { ask } = await shop()
    await ask('PUT', `${rules}/a`, { bands: [band] })
    const { status, body } = await ask('PUT', `${rules}/a`, { colour: 'red', bands: [{ capacity: -1, window: '1x' }] })
    expect(status).toBe(400)
    expect(body.code).toBe('FLUXGATE_RULES_INVALID')
    expect(body.errors.map(({ path }: { path: string }) => path).sort()).toEqual([
      'bands[0].capacity',
      'bands[0].window',
      'colour',
    ])
    expect((await ask('GET', `${rules}/a`)).body.version).toBe(1)
    for (const wrong of ['[]', '7', 'null', '{"id":"b"}', '{"id":7}'])
      expect((await ask('PUT', `${rules}/a`, wrong)).status).toBe(400)
    for (const wrong of ['[]', '7', 'null', '{"id":"b"}', '{"id":null}', '{"bands":null}'])
      expect((await ask('PATCH', `${rules}/a`, wrong)).status).toBe(400)
  })

  it('with one glob too many for their set are rejected by POST, PUT and PATCH, and the set stays in effect', async () => {
    const { ask } = await shop()
    const globs = Array.from({ length: 100 }, (_, i) => ({ id: `r${i}`, path: `/a/*x${i}*`, bands: [band] }))
    expect((await ask('PUT', set, { rules: [...globs, { id: 'plain', path: '/b', bands: [band] }] })).status).toBe(200)
    const path = '/a/*more*'
    const rejected = {
      status: 400,
      body: {
        code: 'FLUXGATE_RULES_INVALID',
        errors: [{ path: 'path', message: expect.stringContaining('at most 100 similar globs; "*more*" exceeds') }],
      },
    }
    expect(await ask('POST', rules, { id: 'more', path, bands: [band] })).toMatchObject(rejected)
    expect(await ask('PUT', `${rules}/more`, { path, bands: [band] })).toMatchObject(rejected)
    expect(await ask('PATCH', `${rules}/plain`, { path })).toMatchObject(rejected)
    expect(await ask('GET', set)).toMatchObject({ body: { version: 2 } })
    expect((await ask('POST', '/api/reload')).status).toBe(200)
    expect((await ask('PATCH', `${rules}/r7`, { path })).status).toBe(200)
  })

  it('with duplicate members are rejected as ambiguous', async () => {
    const { ask } = await shop()
    const { status, body } = await ask('PUT', `${rules}/a`, '{"bands":[{"capacity":1,"capacity":2,"window":"1s"}]}')
    expect(status).toBe(400)
    expect(body.detail).toBe('The body is not JSON: at character 25, "capacity" is given twice.')
    expect((await ask('GET', `${rules}/a`)).status).toBe(404)
  })

  it('of an unknown rule set are 404', async () => {
    const { ask } = await shop()
    const elsewhere = '/api/rule-sets/nobody/rules'
    for (const [method, path, body] of [
      ['GET', elsewhere],
      ['POST', elsewhere, { id: 'a', bands: [band] }],
      ['GET', `${elsewhere}/a`],
      ['PUT', `${elsewhere}/a`, { bands: [band] }],
      ['PATCH', `${elsewhere}/a`, {}],
      ['DELETE', `${elsewhere}/a`],
    ] as const)
      expect((await ask(method, path, body)).status).toBe(404)
  })

  it('log every change with its author, content and trace', async () => {
    const { ask, lines } = await shop()
    const trace = '0af7651916cd43dd8448eb211c80319c'
    await ask('PUT', `${rules}/a`, { bands: [band] }, { traceparent: `00-${trace}-b7ad6b7169203331-01` })
    expect(lines.at(-1)).toEqual({
      message: 'change applied',
      action: 'PUT_RULE',
      ruleSetId: 'shop',
      ruleId: 'a',
      version: 1,
      by: '127.0.0.1',
      traceId: trace,
    })
  })
})

describe('POST /api/rules/validate', () => {
  it('reports every issue and changes nothing', async () => {
    const { ask } = await shop()
    const wrong = {
      ruleSets: [{ id: 'x', rules: [{ id: 'a', bands: [{ capacity: -1, window: '1s' }] }, { id: 'a' }] }],
    }
    const { status, body } = await ask('POST', '/api/rules/validate', wrong)
    expect(status).toBe(200)
    expect(body.valid).toBe(false)
    expect(body.errors.map(({ path }: { path: string }) => path)).toEqual([
      'ruleSets[0].rules[0].bands[0].capacity',
      'ruleSets[0].rules[1].bands',
      'ruleSets[0].rules[1].id',
    ])
    expect((await ask('GET', '/api/rule-sets/x')).status).toBe(404)
  })

  it.each([
    [{ ruleSets: [] }, true],
    [{ id: 'x', rules: [] }, true],
    [{ id: 'a', bands: [band] }, true],
    [{ id: 'a', bands: [] }, false],
    ['7', false],
    ['null', false],
  ])('%j is valid: %s', async (document, valid) => {
    const { ask } = await serverWith()
    expect((await ask('POST', '/api/rules/validate', document)).body.valid).toBe(valid)
  })
})

describe('POST /api/reload', () => {
  it('reloads the rules, with or without a body', async () => {
    const { ask } = await shop()
    await ask('PUT', '/api/rule-sets/other', { rules: [{ id: 'a', bands: [band] }] })
    const all = {
      ruleSets: [
        { id: 'other', rules: 1 },
        { id: 'shop', rules: 0 },
      ],
    }
    expect(await ask('POST', '/api/reload')).toMatchObject({ status: 200, body: all })
    expect(await ask('POST', '/api/reload', {})).toMatchObject({ status: 200, body: all })
    expect((await ask('POST', '/api/reload', { ruleSetId: 'other' })).body).toEqual({
      ruleSets: [{ id: 'other', rules: 1 }],
    })
    expect((await ask('POST', '/api/reload', { ruleSetId: 'nobody' })).status).toBe(404)
    expect((await ask('POST', '/api/reload', { ruleSetId: 7 })).status).toBe(400)
  })

  it('reports why rules cannot be loaded, and keeps the previous ones', async () => {
    const store = temporaryRules()
    let isBroken = false
    const load = async () => {
      if (isBroken) throw new Error('the disk is gone')
      return store.load()
    }
    const { ask } = await serverWith({ rules: { ...store, load } })
    await ask('PUT', set, { rules: [{ id: 'a', bands: [band] }] })
    isBroken = true
    const failed = await ask('POST', '/api/reload')
    expect(failed).toMatchObject({ status: 409, body: { code: 'FLUXGATE_RULES_NOT_IN_FORCE' } })
    expect(failed.body.detail).toContain('the disk is gone')
    expect((await ask('POST', '/api/ratelimit/check', { ruleSetId: 'shop' })).body.ruleId).toBe('a')
  })
})

describe('rules defined in code', () => {
  it('can be neither read nor edited, and the response explains the fix', async () => {
    const { ask } = await serverWith()
    for (const [method, body] of [['GET'], ['PUT', { rules: [] }], ['DELETE']] as const) {
      const { status, body: problem } = await ask(method, '/api/rule-sets/api', body)
      expect(status).toBe(501)
      expect(problem.detail).toContain('Keep them in a file, in Redis or in MongoDB')
    }
  })
})
