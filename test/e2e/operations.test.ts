/** `init`, `overrides`, `bans`, `reset` and `top` as processes, against a running server. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { tempWorkspace, type Workspace } from './running-program.js'

const rules = {
  id: 'api',
  rules: [
    {
      id: 'per-address',
      overrides: true,
      ban: { after: 100, within: '1m', for: '10m', max: '1h' },
      bands: [{ capacity: 1, window: '1h' }],
    },
    {
      id: 'other-limits',
      path: '/other',
      overrides: true,
      bands: [
        { capacity: 2, algorithm: 'CONCURRENCY' },
        { capacity: 9, algorithm: 'FIXED_WINDOW', calendar: 'MONTH' },
      ],
    },
    { id: 'closed', path: '/closed', bands: [{ capacity: 1, window: '1h' }] },
  ],
}

async function run(workspace: Workspace, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const running = workspace.launch(args, env)
  const status = await running.ended
  return { status, stdout: running.stdout(), stderr: running.stderr() }
}

/** A server with one key that was rejected, and a function that runs a command on it. */
async function served() {
  const workspace = tempWorkspace()
  workspace.write('rules.yaml', rules)
  const env = { FLUXGATE_ADMIN_TOKEN: 'planted-s3cr3t-token' }
  const { api } = await workspace.start(['serve', '--port', '0'], { ...env, FLUXGATE_SERVER_REVEAL_KEYS: 'true' })
  const check = async (clientIp = '203.0.113.7') => {
    const response = await fetch(`${api}/api/ratelimit/check`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${env.FLUXGATE_ADMIN_TOKEN}` },
      body: JSON.stringify({ clientIp, path: '/' }),
    })
    return ((await response.json()) as { allowed: boolean }).allowed
  }
  const ask = (...args: string[]) => run(workspace, [...args, '--server', api], env)
  return { workspace, api, check, ask }
}

describe('fluxgate init', () => {
  it('creates files that doctor accepts and start runs', async () => {
    const workspace = tempWorkspace()
    const created = await run(workspace, ['init', '--json'])
    expect([created.status, JSON.parse(created.stdout)]).toEqual([
      0,
      { created: ['fluxgate.yaml', 'rules.yaml'], kept: [] },
    ])
    const ports = { FLUXGATE_GATEWAY_PORT: '0', FLUXGATE_SERVER_PORT: '0' }
    const checked = await run(workspace, ['doctor', '--json'], ports)
    expect(JSON.parse(checked.stdout)).toMatchObject({ ok: true })
    const { findings } = JSON.parse(checked.stdout) as { findings: { name: string; status: string }[] }
    // The gateway of `start` proxies to an example until there are routes.
    expect(findings.filter(({ status }) => status !== 'ok').map(({ name }) => name)).toEqual(['gateway.routes'])
    const { url } = await workspace.start(['start', '--port', '0'])
    const response = await fetch(`${url}/`)
    expect(response.headers.get('ratelimit-policy')).toBe('"per-address.100-per-1m";q=100;w=60')
  })

  it('never overwrites a file', async () => {
    const workspace = tempWorkspace()
    workspace.write('rules.yaml', '# mine')
    const { status, stdout } = await run(workspace, ['init'])
    expect(status).toBe(1)
    expect(stdout).toContain('! rules.yaml exists and was kept')
    expect(readFileSync(workspace.file('rules.yaml'), 'utf8')).toBe('# mine')
    const failed = await run(workspace, ['init', 'rules.yaml/below'])
    expect([failed.status, failed.stderr]).toEqual([
      2,
      expect.stringMatching(/^error: Cannot write .*Choose a writable/),
    ])
  })
})

describe('fluxgate start in an empty directory', () => {
  it('explains init and runs the demo rules', async () => {
    const workspace = tempWorkspace()
    const running = await workspace.start(['start', '--port', '0'], { npm_command: '' })
    await running.until('the warning is logged', () => running.stderr().includes('Run `fluxgate init`'))
    expect((await fetch(`${running.url}/token`)).headers.get('ratelimit-policy')).toBe('"token.5-per-10s";q=5;w=10')
  })
})

describe('fluxgate serve and gateway in an empty directory', () => {
  it.each([
    ['serve', {}, 'Run `fluxgate init` to create both, or `fluxgate start` to try demo rules.'],
    ['serve', { npm_command: 'exec' }, 'Run `npx fluxgate-js init` to create both'],
    ['gateway', {}, '`fluxgate init` creates the file. Or run `fluxgate start` for a built-in example.'],
  ])('%s with %j names the commands that help', async (command, env, advice) => {
    const running = tempWorkspace().launch([command, '--port', '0'], { npm_command: '', ...env })
    expect(await running.ended).toBe(2)
    expect(running.stderr()).toContain(advice)
  })
})

describe('fluxgate overrides', () => {
  it('sets, gets, lists and deletes overrides that take effect at once', async () => {
    const { check, ask } = await served()
    expect([await check(), await check()]).toEqual([true, false])
    const set = await ask('overrides', 'set', 'api', 'per-address', '203.0.113.7', '--limit', '5/1h', '--note', 'vip')
    expect(set).toMatchObject({ status: 0, stdout: 'Override for 203.0.113.7 created.\n' })
    expect(await check()).toBe(true)
    expect((await ask('overrides', 'set', 'api', 'per-address', '10.0.0.0/8', '--deny')).status).toBe(0)
    expect(await check('10.1.2.3')).toBe(false)
    const listed = await ask('overrides', 'list', 'api', 'per-address')
    expect(listed.stdout).toMatch(/10\.0\.0\.0\/8 +DENY\n203\.0\.113\.7 +LIMIT +5 per 1h +vip\n/)
    const found = await ask('overrides', 'get', 'api', 'per-address', '203.0.113.7', '--json')
    expect(JSON.parse(found.stdout)).toMatchObject({ key: '203.0.113.7', action: 'LIMIT', note: 'vip' })
    const removed = await ask('overrides', 'delete', 'api', 'per-address', '10.0.0.0/8', '--json')
    expect([removed.status, JSON.parse(removed.stdout)]).toEqual([0, { deleted: true }])
    const again = await ask('overrides', 'delete', 'api', 'per-address', '10.0.0.0/8')
    expect([again.status, again.stderr]).toEqual([1, 'No override exists for this key.\n'])
    expect((await ask('overrides', 'get', 'api', 'per-address', '10.0.0.0/8')).status).toBe(1)
  }, 60_000)

  it('sets and lists requests in progress and calendar quotas', async () => {
    const { ask } = await served()
    const limits = ['--limit', '3/concurrent', '--limit', '10/month']
    const set = await ask('overrides', 'set', 'api', 'other-limits', '192.0.2.1', ...limits)
    expect(set).toMatchObject({ status: 0, stdout: 'Override for 192.0.2.1 created.\n' })
    const listed = await ask('overrides', 'list', 'api', 'other-limits')
    expect(listed.stdout).toMatch(/192\.0\.2\.1 +LIMIT +3 concurrent, 10 per month/)
  }, 60_000)

  it('reports invalid overrides, unknown rules and rules without overrides', async () => {
    const { ask } = await served()
    const set = (...args: string[]) => ask('overrides', 'set', ...args)
    expect(await set('api', 'per-address', 'a')).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/^error: Choose one of --limit, --allow and --deny\.\n/),
    })
    expect((await set('api', 'per-address', 'a', '--limit', '5')).stderr).toContain('capacity/window')
    const closed = await set('api', 'closed', 'a', '--allow')
    expect([closed.status, closed.stderr]).toEqual([2, expect.stringContaining('set "overrides": true on the rule')])
    expect((await ask('overrides', 'get', 'api', 'nothing', 'a')).status).toBe(2)
  }, 60_000)
})

describe('fluxgate bans', () => {
  it('sets, gets, lists and lifts bans', async () => {
    const { check, ask } = await served()
    const until = new Date(Date.now() + 600_000).toISOString()
    const set = await ask('bans', 'set', 'api', 'per-address', '203.0.113.7', '--until', until)
    expect(set).toMatchObject({ status: 0, stdout: `203.0.113.7 is banned until ${until}.\n` })
    expect(await check()).toBe(false)
    const other = await ask('bans', 'set', 'api', 'per-address', '198.51.100.1', '--for', '10m', '--json')
    expect(JSON.parse(other.stdout)).toMatchObject({ key: '198.51.100.1', retryAfterMs: 600_000, count: 0 })
    expect((await ask('bans', 'list', 'api', 'per-address')).stdout).toContain(`203.0.113.7   ${until}  0`)
    const listed = await ask('bans', 'list', 'api', 'per-address', '--prefix', '198.', '--json')
    expect(JSON.parse(listed.stdout)).toMatchObject({ bans: [{ key: '198.51.100.1' }], more: false })
    expect((await ask('bans', 'get', 'api', 'per-address', '203.0.113.7', '--json')).status).toBe(0)
    const lifted = await ask('bans', 'lift', 'api', 'per-address', '203.0.113.7', '--json')
    expect([lifted.status, JSON.parse(lifted.stdout)]).toEqual([0, { lifted: true }])
    expect(await check()).toBe(true)
    const again = await ask('bans', 'lift', 'api', 'per-address', '203.0.113.7')
    expect([again.status, again.stderr]).toEqual([1, 'The key is not banned.\n'])
  }, 60_000)

  it('reports invalid bans, rules without a ban and unknown rules', async () => {
    const { ask } = await served()
    const long = await ask('bans', 'set', 'api', 'per-address', '203.0.113.7', '--for', '2h')
    expect([long.status, long.stderr]).toEqual([2, expect.stringContaining('for: must be at most 3600s')])
    const closed = await ask('bans', 'set', 'api', 'closed', '203.0.113.7')
    expect([closed.status, closed.stderr]).toEqual([2, expect.stringContaining('must be a rule with a ban')])
    expect((await ask('bans', 'list', 'api', 'nothing')).status).toBe(2)
    expect((await ask('bans', 'get', 'api', 'nothing', 'a')).status).toBe(2)
  }, 60_000)
})

describe('fluxgate reset', () => {
  it('resets a key, and a rule or a rule set only with --yes', async () => {
    const { check, ask } = await served()
    expect([await check(), await check()]).toEqual([true, false])
    expect(await ask('reset', 'api', 'per-address', '203.0.113.7')).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^Reset key 203\.0\.113\.7 of rule per-address of rule set api on /),
    })
    expect([await check(), await check()]).toEqual([true, false])
    expect(await ask('reset', 'api')).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/^error: This would reset all keys of all rules of rule set api\. Add --yes/),
    })
    expect(await check()).toBe(false)
    const all = await ask('reset', 'api', '--yes', '--json')
    const { rules: reset, ...rest } = JSON.parse(all.stdout) as { rules: string[] }
    expect([reset.sort(), rest]).toEqual([['closed', 'other-limits', 'per-address'], { ruleSetId: 'api', key: null }])
    expect(await check()).toBe(true)
    expect((await ask('reset', 'nothing', '--yes')).status).toBe(2)
  }, 60_000)
})

describe('fluxgate top', () => {
  it('prints a snapshot of rates, rules and rejected keys without a terminal', async () => {
    const { api, check, ask } = await served()
    for (let i = 0; i < 3; i++) await check()
    const { status, stdout } = await ask('top')
    expect(status).toBe(0)
    expect(stdout).toContain(`fluxgate top  ${api}  `)
    expect(stdout).toMatch(/^total +1 +0 +2 +0 +0$/m)
    expect(stdout).toMatch(/^api +per-address +1 +0 +2 +0$/m)
    expect(stdout).toMatch(/^203\.0\.113\.7 +per-address +\d +2$/m)
    const json = JSON.parse((await ask('top', '--json')).stdout)
    expect(json).toMatchObject({ totals: { allowed: 1, denied: 2 }, keys: [{ key: '203.0.113.7' }] })
    expect((await ask('top', '--interval', 'never')).status).toBe(2)
  }, 60_000)

  it('reports a server that cannot be reached', async () => {
    const failed = await run(tempWorkspace(), ['top', '--server', 'http://127.0.0.1:1'])
    expect([failed.status, failed.stderr]).toEqual([2, expect.stringContaining('Cannot reach http://127.0.0.1:1')])
  })
})
