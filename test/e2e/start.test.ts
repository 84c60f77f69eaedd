/** `fluxgate start` in a fresh clone: the built program, the shipped rules, real HTTP. */
import { spawnSync } from 'node:child_process'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { root } from './command-line.js'
import { program, type Running, tempWorkspace, type Workspace } from './running-program.js'

let workspace: Workspace
const file = (name: string): string => workspace.file(name)

beforeEach(() => {
  workspace = tempWorkspace()
  copyFileSync(join(root, 'rules.yaml'), file('rules.yaml'))
})

/** As under npm: only the shell receives signals, not its child. */
const byShell = ['sh', '-c', '"$0" "$@" & echo "pid $!"; wait $!', ...program]

const launch = (args: readonly string[], env?: NodeJS.ProcessEnv): Running => workspace.launch(['start', ...args], env)

const start = (
  args: readonly string[] = ['--port', '0'],
  env?: NodeJS.ProcessEnv,
  command?: readonly string[],
): Promise<Running> => workspace.start(['start', ...args], env, command)

/** Allows one request, delays a second one until `window` has passed, and rejects a third. */
function startHolding(window: string): Promise<Running> {
  const rule = `{ id: slow, algorithm: leaky-bucket, bands: [{ capacity: 2, refillTokens: 1, window: ${window} }] }`
  writeFileSync(file('rules.yaml'), `id: slow\nrules: [${rule}]\n`)
  return start()
}

const get = (url: string, init?: RequestInit): Promise<Response> => fetch(url, init)
const statuses = async (url: string, count: number): Promise<number[]> => {
  const result: number[] = []
  for (let i = 0; i < count; i++) result.push((await get(url)).status)
  return result
}

const edit = (change: (text: string) => string): void =>
  workspace.write('rules.yaml', change(readFileSync(file('rules.yaml'), 'utf8')))

describe('a limited endpoint', () => {
  it('returns the remaining permits with an allowed request', async () => {
    const { url } = await start()
    const response = await get(`${url}/token?x=1`)
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({ hello: '127.0.0.1', method: 'GET', path: '/token' })
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(response.headers.get('ratelimit-policy')).toBe('"token.5-per-10s";q=5;w=10')
    expect(response.headers.get('ratelimit')).toBe('"token.5-per-10s";r=4;t=2')
    expect(response.headers.get('x-ratelimit-limit')).toBe('5')
    expect(response.headers.get('x-ratelimit-remaining')).toBe('4')
    expect(response.headers.get('retry-after')).toBeNull()
  })

  it('rejects with Retry-After, rate limit headers and a problem document', async () => {
    const { url } = await start()
    expect(await statuses(`${url}/sliding-log`, 3)).toEqual([200, 200, 200])
    const askedAt = Date.now() / 1_000
    const response = await get(`${url}/sliding-log`)
    const { retryAfterMs, ...problem } = (await response.json()) as { retryAfterMs: number }
    const seconds = Math.ceil(retryAfterMs / 1_000)
    expect(response.status).toBe(429)
    expect(response.headers.get('content-type')).toBe('application/problem+json')
    expect(problem).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'Request cannot be satisfied as assigned quota has been exceeded',
      status: 429,
      detail: `The limit "sliding-log.3-per-1m" of 3 is exhausted. Try again in ${seconds} s.`,
      'violated-policies': ['sliding-log.3-per-1m'],
    })
    expect(retryAfterMs).toBeGreaterThan(30_000)
    expect(retryAfterMs).toBeLessThanOrEqual(60_000)
    expect(response.headers.get('retry-after')).toBe(String(seconds))
    expect(response.headers.get('ratelimit')).toBe(`"sliding-log.3-per-1m";r=0;t=${seconds}`)
    expect(response.headers.get('ratelimit-policy')).toBe('"sliding-log.3-per-1m";q=3;w=60')
    expect(response.headers.get('x-ratelimit-limit')).toBe('3')
    expect(response.headers.get('x-ratelimit-remaining')).toBe('0')
    const resetAt = Number(response.headers.get('x-ratelimit-reset'))
    // Rounded up to seconds, and measured between the request and its response.
    expect(resetAt).toBeGreaterThanOrEqual(Math.floor(askedAt + retryAfterMs / 1_000))
    expect(resetAt).toBeLessThanOrEqual(Math.ceil(Date.now() / 1_000) + seconds)
  })

  it('delays requests to a leaky bucket until they are due', async () => {
    const { url } = await start()
    const askedAt = performance.now()
    const two = await Promise.all([1, 2].map(() => get(`${url}/leaky`)))
    expect(two.map(({ status }) => status)).toEqual([200, 200])
    expect(performance.now() - askedAt).toBeGreaterThan(900)
  })

  it('counts each user separately, applies all bands, and ignores shadow rules', async () => {
    const { url } = await start()
    const as = (user: string) => get(`${url}/account/x`, { headers: { 'X-User-Id': user } })
    const seen = [await as('ann'), await as('ann'), await as('ann'), await as('bob')].map(({ status }) => status)
    expect(seen).toEqual([200, 200, 429, 200])
    expect(await (await as('bob')).json()).toMatchObject({ hello: 'bob' })
    const response = await get(`${url}/api/users`)
    expect(response.headers.get('ratelimit-policy')).toBe('"api.burst";q=3;w=2, "api.sustained";q=10;w=60')
    expect(await statuses(`${url}/elsewhere`, 30)).toEqual(Array(30).fill(200))
  })

  it('treats different spellings of a path as the same path', async () => {
    const { url } = await start()
    await statuses(`${url}/sliding-log/`, 3)
    expect((await get(`${url}//sliding%2Dlog`)).status).toBe(429)
  })
})

describe('an edit of the rules', () => {
  it('applies immediately, without a restart', async () => {
    const running = await start()
    expect(await statuses(`${running.url}/sliding-log`, 4)).toEqual([200, 200, 200, 429])
    edit((text) => text.replace('{ capacity: 3, window: 1m }', '{ capacity: 1, window: 1m }'))
    await running.until('the new rules apply', () => /rules\.yaml reloaded: 8 rules active\n/.test(running.stdout()))
    expect(await statuses(`${running.url}/sliding-log`, 2)).toEqual([200, 429])
  })

  const notTaken =
    'failed to reload rules.yaml, the current rules stay in effect: ruleSets[0].rules[3].bands[0].capacity: must be an integer from 0 to 1000000000; received "none" (line 42, column 25)'

  it('that is invalid changes nothing and is logged with its position', async () => {
    const running = await start()
    edit((text) => text.replace('{ capacity: 3, window: 1m }', '{ capacity: none, window: 1m }'))
    await running.until('the error is logged', () => running.stderr().includes('\n'))
    expect(JSON.parse(running.stderr())).toEqual({ time: expect.any(String), level: 'error', message: notTaken })
    expect(await statuses(`${running.url}/sliding-log`, 4)).toEqual([200, 200, 200, 429])
    edit((text) => text.replace('capacity: none', 'capacity: 3'))
    await running.until('the rules are reloaded', () => running.stdout().includes('rules.yaml reloaded: no changes'))
  })

  it('that is invalid is logged as text, and as JSON on stderr with --json', async () => {
    const breakOne = () => edit((text) => text.replace('{ capacity: 3, window: 1m }', '{ capacity: none, window: 1m }'))
    const shown = await start(['--port', '0'], { FLUXGATE_LOG_FORMAT: 'text' })
    breakOne()
    await shown.until('the error is logged', () => shown.stderr().includes('\n'))
    expect(shown.stderr().slice(8)).toBe(` error ${notTaken}\n`)
    shown.process.kill('SIGTERM')
    await shown.ended
    edit((text) => text.replace('capacity: none', 'capacity: 3'))

    const reported = launch(['--port', '0', '--json'])
    await reported.until('it has started', () => reported.stdout().includes('"event":"started"'))
    breakOne()
    await reported.until(
      'the error is logged',
      () => reported.stdout().includes('"event":"reloaded"') && reported.stderr().includes('\n'),
    )
    expect(reported.stdout()).toContain('received \\"none\\"')
    expect(JSON.parse(reported.stderr())).toMatchObject({ level: 'error', message: notTaken })
  })
})

describe('the gateway and the API', () => {
  it('share their buckets, their rules and their statistics', async () => {
    const { url, api } = await start()
    await statuses(`${url}/sliding-log`, 4)
    const body = JSON.stringify({ clientIp: '127.0.0.1', path: '/sliding-log' })
    const headers = { 'Content-Type': 'application/json' }
    const decision = await get(`${api}/api/ratelimit/check`, { method: 'POST', headers, body })
    expect(await decision.json()).toMatchObject({ allowed: false, ruleId: 'sliding-log' })
    const { keys } = (await (await get(`${api}/api/stats/top?by=denied`)).json()) as { keys: unknown[] }
    expect(keys).toEqual([
      expect.objectContaining({ ruleId: 'sliding-log', denied: 2, key: expect.stringMatching(/^sha256:/) }),
    ])
  })

  it('both apply a rule changed through the API once the API has responded', async () => {
    const { url, api } = await start()
    const ruleUrl = `${api}/api/rule-sets/default/rules/sliding-log`
    const patch = { bands: [{ capacity: 1, window: '1m' }] }
    const headers = { 'Content-Type': 'application/merge-patch+json' }
    expect((await get(ruleUrl, { method: 'PATCH', headers, body: JSON.stringify(patch) })).status).toBe(200)
    expect(await statuses(`${url}/sliding-log`, 2)).toEqual([200, 429])
    expect(readFileSync(file('rules.yaml'), 'utf8')).toContain('# Three in any minute, exactly')
  })

  it('reload rules on SIGHUP', async () => {
    const running = await start()
    running.process.kill('SIGHUP')
    await running.until('the rules are reloaded', () => running.stdout().includes('rules.yaml reloaded: no changes'))
    expect((await get(`${running.api}/health/ready`)).status).toBe(200)
  })
})

describe('the output', () => {
  const hasCurl = spawnSync('curl', ['--version']).status === 0

  /** Runs a printed curl line, with fetch if curl is missing, and returns the statuses. */
  async function perform(line: string): Promise<{ statuses: number[] }> {
    if (hasCurl) {
      const report = line.replace(/ -w "[^"]*"/, '').replace('curl ', String.raw`curl -s -w "\n%{http_code}\n" `)
      const { stdout } = spawnSync('bash', ['-c', report], { encoding: 'utf8' })
      return { statuses: [...stdout.matchAll(/^(\d{3})$/gm)].map((one) => Number(one[1])) }
    }
    const [, url = '', last = '1'] = /(http:[^\s"?]+)(?:\?\[1-(\d+)\])?/.exec(line) ?? []
    const statuses: number[] = []
    for (let i = 0; i < Number(last); i++) statuses.push((await get(url)).status)
    return { statuses }
  }

  it('lists URLs, rules and example commands that work as described', async () => {
    const running = await start()
    const { url, api } = running
    expect(running.stdout()).toContain(
      `FluxGate listens on ${url}\nThe API listens on ${api}\nConsole: ${api}/console. API description: ${api}/openapi.json\nRules: rules.yaml, 8 rules.`,
    )
    const lines = [...running.stdout().matchAll(/^ {2}(curl .*)\n {6}(.*)$/gm)].map((one) => [one[1], one[2]])
    expect(lines.map(([, meaning]) => meaning)).toEqual([
      'allowed: 200 with rate limit headers',
      'the last one is rejected: 429 with Retry-After',
      'allowed but delayed: a leaky bucket spaces the requests',
      'a decision as JSON',
      'metrics for Prometheus',
    ])
    const [allowed, rejected, held, check, metrics] = lines.map(([line]) => line) as [
      string,
      string,
      string,
      string,
      string,
    ]
    expect((await perform(allowed)).statuses).toEqual([200])
    expect((await perform(rejected)).statuses).toEqual([200, 200, 200, 429])
    const startedAt = performance.now()
    const { statuses } = await perform(held)
    expect(statuses).toEqual([200, 200, 200])
    // One request per second, so the third is delayed until two seconds after the first.
    expect(performance.now() - startedAt).toBeGreaterThan(1_900)
    if (hasCurl) {
      const { stdout: decision } = spawnSync('bash', ['-c', check], { encoding: 'utf8' })
      expect(JSON.parse(decision)).toMatchObject({ allowed: true, ruleId: 'token', remaining: 4 })
      const { stdout: text } = spawnSync('bash', ['-c', metrics], { encoding: 'utf8' })
      expect(text).toContain('fluxgate_decisions_total{rule_set="default",rule="token",result="allowed"} 2\n')
    }
    for (const page of ['/console', '/openapi.json']) expect((await get(`${api}${page}`)).status).toBe(200)
  })

  it('is JSON lines with --json', async () => {
    const running = launch(['--port', '0', '--json'])
    await running.until('it has started', () => running.stdout().includes('\n'))
    const { url } = JSON.parse(running.stdout()) as { url: string }
    expect(JSON.parse(running.stdout())).toEqual({
      event: 'started',
      url: running.url,
      api: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      metrics: null,
      rules: 'rules.yaml',
      ruleCount: 8,
      config: null,
      routeCount: 8,
      workers: 1,
      warnings: [],
    })
    expect((await get(url)).status).toBe(200)
    edit((text) => text.replace('capacity: 20', 'capacity: 21'))
    await running.until('the reload is logged', () => running.stdout().split('\n').length > 2)
    expect(JSON.parse(running.stdout().split('\n')[1] ?? '')).toMatchObject({
      event: 'reloaded',
      changed: true,
      error: null,
    })
  })
})

describe('starting', () => {
  it('prefers command-line options to environment variables, and these to the file', async () => {
    writeFileSync(file('other.yaml'), 'id: x\nrules: [{ id: one, path: /one, bands: [{ capacity: 1, window: 1m }] }]\n')
    writeFileSync(file('fluxgate.yaml'), 'gateway: { port: 1 }\nrules: { path: other.yaml }\n')
    const fromFile = await start(undefined, { FLUXGATE_GATEWAY_PORT: '1' })
    expect(fromFile.stdout()).toContain('Rules: other.yaml, 1 rule.')
    const fromEnvironment = await start([], { FLUXGATE_GATEWAY_PORT: '0', FLUXGATE_RULES_PATH: 'rules.yaml' })
    expect(fromEnvironment.stdout()).toContain('Rules: rules.yaml, 8 rules.')
    const fromOption = await start(['--port', '0', '--rules', './other.yaml'], { FLUXGATE_RULES_PATH: 'rules.yaml' })
    expect(await statuses(`${fromOption.url}/one`, 2)).toEqual([200, 429])
  })

  it('warns about settings that apply only to the gateway or server command', async () => {
    const running = await start(['--port', '0'], { FLUXGATE_SERVER_WORKERS: '2', FLUXGATE_GATEWAY_METRICS_PORT: '0' })
    expect(running.stderr()).toContain(
      '`fluxgate start` ignores workers: use `fluxgate gateway` or `fluxgate serve` to run several processes.',
    )
    expect(running.stderr()).toContain('`fluxgate start` ignores gateway.metricsPort: its API serves /metrics.')
  })

  it('on a port in use explains the fix and exits with 1', async () => {
    const { url } = await start()
    const port = Number(new URL(url).port)
    const second = launch(['--port', String(port)])
    expect(await second.ended).toBe(1)
    const other = port < 65_535 ? port + 1 : 8080
    expect(second.stderr()).toBe(
      `error: Port ${port} on 127.0.0.1 is already in use. Stop the program that uses it, or choose another port: --port ${other}, or FLUXGATE_GATEWAY_PORT=${other}.\n`,
    )
    expect(second.stdout()).toBe('')
  })

  it('on an API port in use explains the fix, closes the gateway and exits with 1', async () => {
    const { api } = await start()
    const port = Number(new URL(api).port)
    const second = launch(['--port', '0', '--server-port', String(port)])
    expect(await second.ended).toBe(1)
    const other = port < 65_535 ? port + 1 : 8090
    expect(second.stderr()).toBe(
      `error: Port ${port} on 127.0.0.1 is already in use. Stop the program that uses it, or choose another port: --server-port ${other}, or FLUXGATE_SERVER_PORT=${other}.\n`,
    )
    expect(second.stdout()).toBe('')
  })

  it('on all addresses without an admin token fails and explains the fix', async () => {
    const running = launch(['--port', '0'], { FLUXGATE_SERVER_HOST: '0.0.0.0' })
    expect(await running.ended).toBe(2)
    expect(running.stderr()).toMatch(
      /^error: The server cannot listen on 0\.0\.0\.0 without an admin token, .* Set server\.adminToken \(or FLUXGATE_ADMIN_TOKEN\), or listen on 127\.0\.0\.1\.\n/,
    )
    expect(running.stdout()).toBe('')
  })

  it('with an admin token requires it, and includes it in the example commands', async () => {
    const running = await start(undefined, { FLUXGATE_SERVER_HOST: '0.0.0.0', FLUXGATE_ADMIN_TOKEN: 'planted-s3cr3t' })
    expect((await get(`${running.api}/metrics`)).status).toBe(401)
    expect((await get(`${running.api}/health/live`)).status).toBe(200)
    const headers = { Authorization: 'Bearer planted-s3cr3t' }
    expect((await get(`${running.api}/metrics`, { headers })).status).toBe(200)
    const info = await (await get(`${running.api}/info`, { headers })).text()
    expect(JSON.parse(info)).toMatchObject({ store: { type: 'memory' }, rules: { type: 'file', reload: 'WATCH' } })
    expect(running.stdout()).toContain('-H "Authorization: Bearer $FLUXGATE_ADMIN_TOKEN" ')
    expect(`${running.stdout()}${running.stderr()}${info}`).not.toContain('planted-s3cr3t')
  })

  it('with rules in an unreachable Redis reports it and exits with 2', async () => {
    const running = launch(['--port', '0'], { FLUXGATE_RULES_URI: 'redis://127.0.0.1:1' })
    expect(await running.ended).toBe(2)
    expect(running.stderr()).toMatch(/^error: Rules in Redis \(fluxgate\) could not be read: not connected/)
  })

  it.each([
    ['no rules', ['--rules', 'none.yaml'], /^error: There is no rules file none\.yaml/],
    ['invalid rules', ['--rules', 'wrong.yaml'], /^error: wrong\.yaml: 1 error\n {2}ruleSets: must be .*; received 7/],
    [
      'an invalid configuration',
      ['--config', 'conf.yaml'],
      /^error: conf\.yaml: 1 error\n {2}gateway\.prot: unknown key/,
    ],
    ['no configuration', ['--config', 'none.yaml'], /^error: Configuration file not found: none\.yaml/],
    ['an invalid port', ['--port', 'http'], /must be an integer from 0 to 65535/],
  ])('reports %s and exits with 2', async (_, args, message) => {
    writeFileSync(file('wrong.yaml'), '7\n')
    writeFileSync(file('conf.yaml'), 'gateway: { prot: 80 }\n')
    const running = launch(args)
    expect(await running.ended).toBe(2)
    expect(running.stderr()).toMatch(message)
  })
})

describe('stopping', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)(
    'on %s finishes delayed requests, accepts no new ones, and exits with 0',
    async (signal) => {
      const running = await startHolding('2s')
      await get(running.url)
      const two = [get(running.url), get(running.url)]
      expect((await Promise.any(two)).status).toBe(429)
      running.process.kill(signal)
      await running.until('it is stopping', () => running.stdout().includes('stopping'))
      expect((await Promise.all(two)).map(({ status }) => status).sort()).toEqual([200, 429])
      expect(await running.ended).toBe(0)
      await expect(get(running.url)).rejects.toThrow()
    },
  )

  it('is immediate on the second signal', async () => {
    const running = await startHolding('1h')
    await get(running.url)
    const held = [get(running.url), get(running.url)]
    expect((await Promise.any(held)).status).toBe(429)
    const left = Promise.allSettled(held)
    running.process.kill('SIGTERM')
    await running.until('it is stopping', () => running.stdout().includes('stopping'))
    const again = setInterval(() => running.process.kill('SIGTERM'), 50)
    expect(await running.ended).toBe(143)
    clearInterval(again)
    expect((await left).some(({ status }) => status === 'rejected')).toBe(true)
  })

  it('also happens if npm kills only the intermediate shell', async () => {
    const running = await start(['--port', '0'], { npm_lifecycle_event: 'start' }, byShell)
    const pid = Number(/^pid (\d+)$/m.exec(running.stdout())?.[1])
    onTestFinished(() => {
      // Cleans up if the program is still running, which fails the test.
      if (!running.stdout().includes('stopping')) process.kill(pid, 'SIGKILL')
    })
    running.process.kill('SIGTERM')
    await running.until('it is stopping', () => running.stdout().includes('stopping'))
    expect(await running.ended).toBe('SIGTERM')
    await expect(get(running.url)).rejects.toThrow()
  })
})
