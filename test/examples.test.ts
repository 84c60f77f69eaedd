/** Starts each example as a process and uses it as its README describes. */
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { createFluxGate } from '../src/gate/create-flux-gate.js'
import { createServer } from '../src/program/create-server.js'
import { startExample, startServerExample } from './fixtures/start-example.js'
import { sharedRedis } from './servers/shared-redis.js'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const folders = readdirSync(join(root, 'examples'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)
const servers = ['express', 'fastify', 'fetch', 'hono', 'koa', 'nest', 'node-http'].map((name) => `limit-${name}`)
/** Tested in recipes.test.ts. */
const recipes = [
  'limit-lambda',
  'limit-nest-graphql',
  'limit-nest-microservice',
  'limit-plans',
  'limit-socket-io',
  'limit-trpc',
  'limit-websocket',
  'protect-logins',
]
/** Tested by `npm run recipes`, because their packages are large. */
const large = ['limit-graphql-yoga', 'limit-next']
/** Not a program, but a function that a platform calls. */
const functions = ['limit-lambda']

describe('the examples', () => {
  it('are all tested, and each has a README with the command to start it', () => {
    expect(folders.sort()).toEqual(
      [
        'limit-a-function',
        'limit-concurrency',
        'limit-llm-tokens',
        'limit-remote',
        'lock-a-ledger',
        'search-a-catalogue',
        ...servers,
        ...recipes,
        ...large,
      ].sort(),
    )
    for (const name of folders.filter((folder) => !functions.includes(folder)))
      expect(readFileSync(join(root, 'examples', name, 'README.md'), 'utf8')).toContain(
        large.includes(name) ? '`npm run recipes`' : `npm run build\nnode examples/${name}/index.mjs\n`,
      )
  })

  it('limit-concurrency: at most two reports at the same time, in order', async () => {
    const { lines, ended } = startExample('limit-concurrency')
    const printed: string[] = []
    for await (const line of lines) printed.push(line)
    expect((await ended)[0]).toBe(0)
    expect(printed.map((line) => line.split(':')[0])).toEqual(['January', 'February', 'March', 'April', 'May'])
    for (const line of printed) expect(line).toMatch(/started, [12] in progress$/)
  })

  it.each(['memory', 'Redis'])(
    'limit-llm-tokens: estimates are replaced by the tokens that were used, in %s',
    async (where) => {
      const { lines, ended } = startExample(
        'limit-llm-tokens',
        where === 'Redis' ? { REDIS_URI: sharedRedis().uri } : {},
      )
      const printed: string[] = []
      for await (const line of lines) printed.push(line)
      expect((await ended)[0]).toBe(0)
      // The remaining tokens depend on how long the example runs.
      expect(printed.map((line) => line.replace(/, about \d+ thousand left$/, ''))).toEqual([
        'team-a: reserved 90000, used 40',
        'team-a: reserved 60000, used 55000',
        'team-a: 90000 rejected by the rule tokens',
        'team-a: reserved 40000, used 100',
        'team-b: reserved 60000, used 100',
      ])
    },
  )

  it('limit-a-function: three calls at once, then one every 100 ms, in order', async () => {
    const { lines, ended } = startExample('limit-a-function')
    const printed: string[] = []
    for await (const line of lines) printed.push(line)
    expect((await ended)[0]).toBe(0)
    expect(printed.map((line) => line.replace(/^\d+ ms: /, ''))).toEqual([
      'pen costs 3',
      'book costs 4',
      'lamp costs 4',
      'chair costs 5',
      'table costs 5',
    ])
    const [, , , fourth = 0, fifth = 0] = printed.map((line) => Number.parseInt(line, 10))
    expect(fourth).toBeGreaterThanOrEqual(99)
    expect(fifth).toBeGreaterThanOrEqual(199)
  })

  it('lock-a-ledger: a stale write is rejected', async () => {
    const { lines, ended } = startExample('lock-a-ledger', { REDIS_URI: sharedRedis().uri })
    const printed: string[] = []
    for await (const line of lines) printed.push(line)
    expect((await ended)[0]).toBe(0)
    expect(printed).toEqual([
      'first holder still holds the lock: false',
      'stale write "first holder": a newer holder has written',
      'ledger: second holder',
    ])
  })

  it('search-a-catalogue: finds books by all fields, also directly after a change', async () => {
    const { lines, ended } = startExample('search-a-catalogue', { REDIS_URI: sharedRedis().uri })
    const printed: string[] = []
    for await (const line of lines) printed.push(line)
    expect((await ended)[0]).toBe(0)
    expect(printed).toEqual([
      'up to 12: Emma, Embers, 엄마를 부탁해',
      'novels by title: Embers, Emma, 엄마를 부탁해',
      'new, up to 20: Embers',
      'Em…: Empires (90), Emma (40), Embers (7)',
      '엄…: 엄마를 부탁해',
      'Em…: Embers (107), Empires (90), Emma (40)',
      'page 1: Empires, 엄마를 부탁해',
      'page 2: Embers, Emma',
      'sound: true',
    ])
  })

  it('limit-remote: a server decides; without it, requests are allowed', async () => {
    const perAddress = { id: 'per-address', bands: [{ label: 'minute', capacity: 60, window: '1m' }] }
    const login = {
      id: 'login',
      path: '/login',
      method: 'POST',
      bands: [{ label: 'tries', capacity: 3, window: '1m' }],
    }
    const gate = await createFluxGate({ rules: { id: 'api', rules: [perAddress, login] } })
    const server = createServer({ gate })
    const { url } = await server.listen({ port: 0 })
    await expectFourthLoginRejected('limit-remote', { FLUXGATE_URL: url })
    await server.close()
    await gate.close()
    const { lines } = startExample('limit-remote', { PORT: '0', FLUXGATE_URL: url }, 'ignore')
    const [application] = (await once(lines, 'line')) as [string]
    expect((await fetch(application)).status).toBe(200)
  })

  it.each(servers)('%s: rejects the fourth login in a minute, and no other request', async (name) => {
    await expectFourthLoginRejected(name)
  })

  async function expectFourthLoginRejected(name: string, env: NodeJS.ProcessEnv = {}): Promise<void> {
    const { url, stop } = await startServerExample(name, env)
    const answers: Response[] = []
    const startedAt = performance.now()
    for (let i = 0; i < 4; i++) answers.push(await fetch(`${url}/login`, { method: 'POST' }))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429])
    expect(await answers[0]?.text()).toBe('Welcome.\n')
    const retryAfter = Number(answers[3]?.headers.get('retry-after'))
    // A permit is refilled 20 s after the first login.
    expect(retryAfter).toBeGreaterThanOrEqual(Math.floor(20 - (performance.now() - startedAt) / 1_000))
    expect(retryAfter).toBeLessThanOrEqual(20)
    expect(await answers[3]?.json()).toMatchObject({
      status: 429,
      'violated-policies': [expect.stringMatching(/^login\./)],
    })
    const other = await fetch(url)
    expect([other.status, await other.text()]).toEqual([200, 'Hello.\n'])
    expect(Number(other.headers.get('x-ratelimit-remaining'))).toBeGreaterThan(50)
    expect(await stop()).toEqual([0, null])
  }
})
