import { fork } from 'node:child_process'
import { once } from 'node:events'
import { chmod, lstat, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ruleStoreContract } from '../../testing/index.js'
import { fileRuleStore } from './file-rule-store.js'

describe.each([
  ['rules.yaml', 'ruleSets: []\n'],
  ['rules.json', '[]'],
])('a rule store over %s that contains %j', (name, text) => {
  ruleStoreContract(
    it,
    async (clock) => {
      const directory = await mkdtemp(join(tmpdir(), 'fluxgate-'))
      await writeFile(join(directory, name), text)
      return {
        open: () => fileRuleStore(join(directory, name), { clock }),
        remove: () => rm(directory, { recursive: true }),
      }
    },
    // Each edit waits for fsync, which is slow on some disks.
    { notices: true, edits: 60 },
  )
})

const text = `# Who may do what
id: api
rules:
  # Everybody
  - id: all
    bands: [{ capacity: 10, window: 1m }]   # per minute
    attributes: { "owner":  'Ann',   n: 1.0 }
  - id: login
    path: /login
    bands: [{ capacity: 1, window: 1m }]
`

let directory: string
let path: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'fluxgate-'))
  path = join(directory, 'rules.yaml')
  await writeFile(path, text)
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const login = (more: object) => ({ id: 'login', path: '/login', bands: [{ capacity: 1, window: '1m' }], ...more })

describe('a rules file whose versions or history cannot be read', () => {
  it('is not edited with versions that start again', async () => {
    await mkdir(`${path}.versions.json`)
    const store = fileRuleStore(path)
    const unreadable = {
      code: 'FLUXGATE_RULES_UNREADABLE',
      message: expect.stringContaining('rules.yaml.versions.json'),
    }
    await expect(store.getRuleSet('api')).rejects.toMatchObject(unreadable)
    await expect(store.putRule('api', login({ priority: 1 }), { by: 'ann' })).rejects.toMatchObject(unreadable)
    expect(await readFile(path, 'utf8')).toBe(text)
  })

  it('reports no empty history', async () => {
    await mkdir(`${path}.history.jsonl`)
    const reading = fileRuleStore(path).history('api', { limit: 10 })
    await expect(reading).rejects.toMatchObject({ code: 'FLUXGATE_RULES_UNREADABLE' })
  })
})

describe('a rules file that is edited through the store', () => {
  it('keeps every byte outside the edit', async () => {
    const store = fileRuleStore(path)
    await store.putRule('api', login({ bands: [{ capacity: 2, window: '1m' }] }), { by: 'ann' })
    expect(await readFile(path, 'utf8')).toBe(text.replace('capacity: 1,', 'capacity: 2,'))
    await store.deleteRule('api', 'login', { by: 'ann' })
    expect(await readFile(path, 'utf8')).toBe(text.slice(0, text.indexOf('  - id: login')))
  })

  it('keeps its permissions and symbolic links', async () => {
    await chmod(path, 0o640)
    const link = join(directory, 'link.yaml')
    await symlink('rules.yaml', link)
    await fileRuleStore(link).putRule('api', login({ name: 'x' }), { by: 'ann' })
    expect((await lstat(link)).isSymbolicLink()).toBe(true)
    expect((await stat(path)).mode & 0o777).toBe(0o640)
    expect(await readFile(path, 'utf8')).toContain('    name: x\n')
  })

  it('leaves only the file, its versions and its history in the directory', async () => {
    await fileRuleStore(path).putRule('api', login({ name: 'x' }), { by: 'ann' })
    expect((await readdir(directory)).sort()).toEqual([
      'rules.yaml',
      'rules.yaml.history.jsonl',
      'rules.yaml.versions.json',
    ])
  })

  it('that is read-only is rejected and stays unchanged', async () => {
    await chmod(path, 0o444)
    await expect(fileRuleStore(path).putRule('api', login({ name: 'x' }), { by: 'ann' })).rejects.toMatchObject({
      code: 'FLUXGATE_RULES_READ_ONLY',
      message: `This process has no permission to write ${path}. Allow it to write the file and its directory, or edit the file manually.`,
    })
    expect(await readFile(path, 'utf8')).toBe(text)
  })

  it('that is missing or invalid is not overwritten', async () => {
    await writeFile(path, 'id: api\nrules: [')
    await expect(fileRuleStore(path).putRuleSet({ id: 'api', rules: [] }, { by: 'ann' })).rejects.toMatchObject({
      code: 'FLUXGATE_RULES_INVALID',
    })
    expect(await readFile(path, 'utf8')).toBe('id: api\nrules: [')
    await rm(path)
    await expect(fileRuleStore(path).putRuleSet({ id: 'api', rules: [] }, { by: 'ann' })).rejects.toThrow(
      'There is no rules file',
    )
  })
})

describe('a rules file that is edited manually', () => {
  it('gets new versions for changed rules only', async () => {
    const store = fileRuleStore(path)
    expect(await store.getRule('api', 'all')).toMatchObject({ version: 1, attributes: { owner: 'Ann', n: 1 } })
    await writeFile(path, text.replace('capacity: 1,', 'capacity: 5,').replace('# Everybody', '# Each of them'))
    expect((await store.getRuleSet('api'))?.rules.map(({ id, version }) => [id, version])).toEqual([
      ['all', 1],
      ['login', 2],
    ])
    await expect(store.putRule('api', login({ name: 'x' }), { by: 'ann', ifVersion: 1 })).rejects.toMatchObject({
      code: 'FLUXGATE_RULES_CONFLICT',
    })
    await store.putRule('api', login({ name: 'x' }), { by: 'ann', ifVersion: 2 })
    const history = await fileRuleStore(path).history('api', { limit: 10 })
    expect(history.items.map(({ by, action, version }) => [by, action, version])).toEqual([
      ['ann', 'PUT_RULE', 3],
      ['outside', 'PUT_SET', 2],
      ['outside', 'PUT_SET', 1],
    ])
    expect(history.items[1]?.before).toMatchObject({ rules: [{ id: 'all' }, { bands: [{ capacity: 1 }] }] })
    expect(history.items[1]?.after).toMatchObject({ rules: [{ id: 'all' }, { bands: [{ capacity: 5 }] }] })
  })

  it('during an edit keeps the manual change, and the edit is applied on top of it', async () => {
    const store = fileRuleStore(path)
    const before = await store.getRuleSet('api')
    const edit = store.putRule('api', login({ name: 'x' }), { by: 'ann' })
    await writeFile(path, text.replace('capacity: 10,', 'capacity: 11,'))
    await edit
    const after = await store.getRuleSet('api')
    expect(after?.rules).toMatchObject([{ bands: [{ capacity: 11 }] }, { name: 'x' }])
    expect(after?.version).toBeGreaterThan(before?.version ?? 0)
  })

  it('has the versions in its text updated', async () => {
    await writeFile(
      path,
      'id: s\nversion: 7\nrules:\n  - { id: a, version: 9, bands: [{ capacity: 1, window: 1s }] }\n',
    )
    const store = fileRuleStore(path)
    await store.putRule('s', { id: 'a', name: 'x', bands: [{ capacity: 1, window: '1s' }] }, { by: 'ann' })
    expect(await readFile(path, 'utf8')).toBe(
      'id: s\nversion: 2\nrules:\n  - { id: a, version: 2, bands: [{ capacity: 1, window: 1s }], name: x }\n',
    )
  })
})

describe('the lock of a rules file', () => {
  const edit = () => fileRuleStore(path).putRule('api', login({ name: 'x' }), { by: 'ann' })

  it('of a dead process is taken over', async () => {
    const child = fork('-e', ['0'], { execArgv: [], stdio: 'ignore' })
    await once(child, 'exit')
    await writeFile(`${path}.lock`, JSON.stringify({ pid: child.pid, host: hostname(), token: 'x' }))
    await edit()
    expect(await readdir(directory)).not.toContain('rules.yaml.lock')
  })

  it('that is stale is taken over', async () => {
    await writeFile(`${path}.lock`, JSON.stringify({ pid: 1, host: 'elsewhere', token: 'x' }))
    const longAgo = new Date(Date.now() - 60_000)
    await utimes(`${path}.lock`, longAgo, longAgo)
    await edit()
  })

  it('is released when an edit fails', async () => {
    await mkdir(join(directory, 'rules.yaml.versions.json'))
    await expect(edit()).rejects.toMatchObject({ code: 'FLUXGATE_RULES_UNREADABLE' })
    expect(await readdir(directory)).not.toContain('rules.yaml.lock')
  })
})
