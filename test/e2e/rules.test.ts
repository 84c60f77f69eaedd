/** `fluxgate rules` and `fluxgate check` have the same results on a file, a configuration and a running server. */

import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { freshPrefix, sharedRedis } from '../servers/shared-redis.js'
import { root } from './command-line.js'
import { tempWorkspace, type Workspace } from './running-program.js'

const rules = `# what the shop allows
ruleSets:
  - id: shop
    rules:
      # per address
      - { id: all, bands: [{ capacity: 100, window: 1m }], attributes: { owner: ann, "n": [1, 2.5, null] } }
      - { id: login, path: /login, mode: SHADOW, bands: [{ capacity: 5, window: 1m }] }
`
const other = `ruleSets:
  - id: shop
    rules:
      - { id: all, bands: [{ capacity: 50, window: 1m }], attributes: { owner: ann, "n": [1, 2.5, null] } }
      - { id: search, path: /search, bands: [{ capacity: 1, window: 1s }] }
  - id: blog
    rules: []
`

interface Result {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Asynchronous, because this process must also read the output of the server, its other child. */
function run(workspace: Workspace, args: readonly string[], { env = {}, input = '' } = {}): Promise<Result> {
  const child = spawn(process.execPath, [join(root, 'dist', 'command', 'main.js'), ...args], {
    cwd: workspace.file('.'),
    env: { ...process.env, NO_COLOR: '1', ...env },
  })
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text
    })
  child.stdin.end(input)
  return new Promise((resolve) => child.once('close', (status) => resolve({ status, ...output })))
}

type Setup = (workspace: Workspace) => Promise<{ target: string[]; env: NodeJS.ProcessEnv; source: RegExp }>

const targets: [string, Setup][] = [
  ['a file', async () => ({ target: ['--rules', 'rules.yaml'], env: {}, source: /rules\.yaml/ })],
  [
    'rules in Redis, by a configuration',
    async (workspace) => {
      const prefix = freshPrefix()
      workspace.write('conf.yaml', {
        store: { uri: sharedRedis().uri, prefix },
        rules: { type: 'redis' },
        reload: { channel: prefix },
      })
      await run(workspace, ['rules', 'apply', 'rules.yaml', '--config', 'conf.yaml'])
      return { target: ['--config', 'conf.yaml'], env: {}, source: /Redis/ }
    },
  ],
  [
    'a server',
    async (workspace) => {
      const env = { FLUXGATE_ADMIN_TOKEN: 'planted-s3cr3t' }
      const { api } = await workspace.start(['serve', '--port', '0'], env)
      return { target: ['--server', api], env, source: /127\.0\.0\.1/ }
    },
  ],
]

describe.each(targets)('rules on %s', (_, setup) => {
  it('are listed, read, compared, applied and exported', async () => {
    const workspace = tempWorkspace()
    workspace.write('rules.yaml', rules)
    workspace.write('other.yaml', other)
    const { target, env, source } = await setup(workspace)
    const ask = (...args: string[]) => run(workspace, ['rules', ...args, ...target], { env })

    expect((await ask('list')).stdout).toMatch(/^shop +2 +all$/m)
    expect((await ask('list', 'shop')).stdout).toMatch(/^login +0 +\/login +5 per 1m +IP +shadow$/m)
    expect(JSON.parse((await ask('get', 'shop', 'all', '--json')).stdout)).toMatchObject({ id: 'all', version: 1 })
    expect(await ask('get', 'nowhere')).toMatchObject({ status: 1, stdout: '' })

    const same = await ask('diff', 'rules.yaml')
    expect(same.stdout).toMatch(source)
    expect(same.status).toBe(0)
    const diff = await ask('diff', 'other.yaml')
    expect(diff.status).toBe(1)
    expect(diff.stdout).toBe(
      '~ shop\n  ~ all\n      bands: [{"capacity":100,"window":"1m"}] → [{"capacity":50,"window":"1m"}]\n  + search\n  - login\n+ blog\n',
    )
    expect((await ask('apply', 'other.yaml', '--dry-run')).stdout).toBe(diff.stdout)
    expect((await ask('diff', 'other.yaml')).status).toBe(1)
    expect(await ask('apply', 'other.yaml')).toEqual({ status: 0, stdout: diff.stdout, stderr: '' })
    expect((await ask('diff', 'other.yaml')).status).toBe(0)

    const exported = JSON.parse((await ask('export', '--json')).stdout) as {
      ruleSets: { id: string; rules: { attributes?: unknown }[] }[]
    }
    expect(exported.ruleSets.map(({ id }) => id).sort()).toEqual(['blog', 'shop'])
    const all = exported.ruleSets.find(({ id }) => id === 'shop')?.rules.find((rule) => rule.attributes)
    expect(all).toEqual({
      id: 'all',
      bands: [{ capacity: 50, window: '1m' }],
      attributes: { owner: 'ann', n: [1, 2.5, null] },
    })

    expect(await ask('apply', 'rules.yaml', '--only-new')).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^No differences/),
    })
    const pruned = await run(workspace, ['rules', 'apply', '-', '--prune', ...target], { env, input: rules })
    expect(pruned.stdout).toMatch(/^- blog$/m)
    expect((await ask('list')).stdout).not.toMatch(/blog/)
  }, 120_000)

  it('keep attributes byte for byte through export and import, as YAML and as JSON', async () => {
    const workspace = tempWorkspace()
    workspace.write('rules.yaml', rules)
    const { target, env } = await setup(workspace)
    const ask = (...args: string[]) => run(workspace, ['rules', ...args, ...target], { env })
    const attributes = '{"b":1.0,"10":12345678901234567890,"2":"\\u00e9","a":1e400}'
    const bands = '"bands":[{"capacity":1,"window":"1s"}]'
    workspace.write('odd.json', `{"id":"shop","rules":[{"id":"odd","attributes":${attributes},${bands}}]}`)
    expect((await ask('apply', 'odd.json')).status).toBe(0)
    expect((await ask('get', 'shop', 'odd', '--json')).stdout).toContain(`"attributes": ${attributes}`)
    for (const format of [[], ['--json']]) {
      const { stdout } = await ask('export', ...format)
      expect(stdout).toMatch(/12345678901234567890/)
      workspace.write('copy.yaml', 'ruleSets: []\n')
      const copied = await run(workspace, ['rules', 'apply', '-', '--rules', 'copy.yaml'], { input: stdout })
      expect(copied.status).toBe(0)
      expect(readFileSync(workspace.file('copy.yaml'), 'utf8')).toContain(`attributes: ${attributes}\n`)
      expect((await ask('diff', 'copy.yaml')).status).toBe(0)
    }
  }, 120_000)

  it('that are invalid change nothing, and every issue is reported', async () => {
    const workspace = tempWorkspace()
    workspace.write('rules.yaml', rules)
    workspace.write(
      'wrong.yaml',
      'ruleSets: [{ id: new, rules: [] }, { id: shop, rules: [{ id: a, bands: [{ capacity: none }] }] }]',
    )
    const { target, env } = await setup(workspace)
    const { status, stderr } = await run(workspace, ['rules', 'apply', 'wrong.yaml', ...target], { env })
    expect(status).toBe(2)
    expect(stderr).toMatch(
      /ruleSets\[1\]\.rules\[0\]\.bands\[0\]\.capacity: must be .*; received "none" \(line 1, column 85\)/,
    )
    expect((await run(workspace, ['rules', 'list', ...target], { env })).stdout).not.toMatch(/new/)
  })
})

it('keep the comments of a file', async () => {
  const workspace = tempWorkspace()
  workspace.write('rules.yaml', rules)
  workspace.write('other.yaml', other)
  await run(workspace, ['rules', 'apply', 'other.yaml'])
  expect(readFileSync(workspace.file('rules.yaml'), 'utf8')).toMatch(/^# what the shop allows\n[\s\S]*# per address/)
})

describe('a server', () => {
  it('receives nothing if a rule set of the document is too large for one request', async () => {
    const workspace = tempWorkspace()
    workspace.write('rules.yaml', 'ruleSets: []')
    const { api } = await workspace.start(['serve', '--port', '0'])
    const rule = (i: number) => ({ id: `r${i}`, description: 'x'.repeat(200), bands: [{ capacity: 1, window: '1s' }] })
    const large = { id: 'large', rules: Array.from({ length: 5_000 }, (_, i) => rule(i)) }
    workspace.write('large.json', { ruleSets: [{ id: 'small', rules: [] }, large] })
    const { status, stderr } = await run(workspace, ['rules', 'apply', 'large.json', '--server', api])
    expect(status).toBe(2)
    expect(stderr).toMatch(
      /Rule set "large" \(5000 rules\) is \d+ bytes of JSON; .* accepts at most 1048576\. Nothing was changed\./,
    )
    expect((await run(workspace, ['rules', 'list', '--server', api, '--json'])).stdout.trim()).toBe('[]')
  })

  it('that requires a token, rejects one, or is unavailable is reported in one sentence', async () => {
    const workspace = tempWorkspace()
    workspace.write('rules.yaml', rules)
    const { api } = await workspace.start(['serve', '--port', '0'], { FLUXGATE_ADMIN_TOKEN: 'planted-s3cr3t' })
    const list = (url: string, token?: string) =>
      run(workspace, ['rules', 'list', '--server', url], {
        env: token === undefined ? {} : { FLUXGATE_ADMIN_TOKEN: token },
      })
    expect(await list(api)).toEqual({
      status: 2,
      stdout: '',
      stderr: `error: ${api} requires a token. Set FLUXGATE_ADMIN_TOKEN.\n`,
    })
    expect((await list(api, 'planted-wrong')).stderr).toBe(
      `error: ${api} rejected the token. Check FLUXGATE_ADMIN_TOKEN.\n`,
    )
    expect((await list('http://127.0.0.1:1', 'planted-wrong')).stderr).toMatch(
      /^error: Cannot reach http:\/\/127\.0\.0\.1:1: .* Check that the server is running and that the URL is correct\.\n$/,
    )
    expect((await list('127.0.0.1:8090')).stderr).toContain('such as http://127.0.0.1:8090')
    expect((await list('http://u:planted-s3cr3t@127.0.0.1')).stderr).not.toContain('planted-s3cr3t')
  })

  it('decides a request from the command line with its own buckets', async () => {
    const workspace = tempWorkspace()
    workspace.write('rules.yaml', { id: 'api', rules: [{ id: 'one', bands: [{ capacity: 2, window: '1h' }] }] })
    const { api } = await workspace.start(['serve', '--port', '0'], {
      FLUXGATE_CHECK_TOKEN: 'check',
      FLUXGATE_ADMIN_TOKEN: 'admin',
    })
    const env = { FLUXGATE_CHECK_TOKEN: 'check' }
    const ask = (...more: string[]) => run(workspace, ['check', '--server', api, '--ip', '192.0.2.1', ...more], { env })
    expect(JSON.parse((await ask('--peek')).stdout)).toMatchObject({ allowed: true, remaining: 1 })
    const two = await ask('--repeat', '2', '--json')
    expect((JSON.parse(two.stdout) as { remaining: number }[]).map(({ remaining }) => remaining)).toEqual([1, 0])
    const third = await ask()
    expect([third.status, JSON.parse(third.stdout).allowed]).toEqual([1, false])
  })
})
