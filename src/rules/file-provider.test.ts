import { chmod, mkdir, mkdtemp, open, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { RuleSetProvider } from '../core/contracts/rule-set-provider.js'
import { FluxGateError } from '../core/errors.js'
import { fileRules } from './file-provider.js'

const rules = (capacity: number | string) =>
  `id: s\nrules:\n  - { id: r, bands: [{ capacity: ${capacity}, window: 1s }] }\n`
const capacityOf = async (provider: RuleSetProvider) => (await provider.load())[0]?.rules[0]?.bands[0]?.capacity

let directory: string
let stop: () => void
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'fluxgate-'))
  stop = () => {}
})
afterEach(async () => {
  stop()
  await rm(directory, { recursive: true, force: true })
})

describe('a rules file', () => {
  it('is parsed as JSON if its name ends in .json, otherwise as YAML', async () => {
    await writeFile(join(directory, 'rules.yaml'), rules(5))
    await writeFile(join(directory, 'rules.json'), '\ufeff{"id":"s","rules":[]}')
    expect(await capacityOf(fileRules(join(directory, 'rules.yaml')))).toBe(5)
    expect(await fileRules(join(directory, 'rules.json')).load()).toEqual([{ id: 's', strategy: 'all', rules: [] }])
    await writeFile(join(directory, 'rules.json'), rules(5))
    await expect(fileRules(join(directory, 'rules.json')).load()).rejects.toMatchObject({
      code: 'FLUXGATE_RULES_INVALID',
      errors: [{ path: 'line 1, column 1', message: 'unexpected "i"; expected a value' }],
    })
  })

  it('is named in the error message if it is invalid', async () => {
    const path = join(directory, 'rules.yaml')
    await writeFile(path, rules('ten'))
    await expect(fileRules(path).load()).rejects.toMatchObject({
      code: 'FLUXGATE_RULES_INVALID',
      message: `${path}: 1 error\n  ruleSets[0].rules[0].bands[0].capacity: must be an integer from 0 to 1000000000; received "ten" (line 3, column 34)`,
    })
  })

  it('that is missing is reported with its path', async () => {
    const path = join(directory, 'rules.yaml')
    await expect(fileRules(path).load()).rejects.toMatchObject({
      code: 'FLUXGATE_RULES_UNREADABLE',
      message: `There is no rules file ${path}; create it, or correct the path.`,
    })
    const short = relative(process.cwd(), path)
    await expect(fileRules(short).load()).rejects.toThrow(`There is no rules file ${short} (${path}); create it`)
  })

  it('that is unreadable is reported with the reason', async () => {
    await expect(fileRules(directory).load()).rejects.toMatchObject({
      code: 'FLUXGATE_RULES_UNREADABLE',
      message: `${directory} is not a file. Pass the path of a YAML or JSON file.`,
    })
    const path = join(directory, 'rules.yaml')
    await writeFile(path, Buffer.from([0x69, 0x64, 0x3a, 0xff]))
    await expect(fileRules(path).load()).rejects.toThrow(`${path} is not UTF-8 text. Save it as UTF-8.`)
    await writeFile(path, rules(5))
    await chmod(path, 0)
    // Permissions do not apply to root.
    if (process.getuid?.() !== 0) await expect(fileRules(path).load()).rejects.toThrow('change its permissions')
  })
})

/** Loads and watches a file. `next` resolves with the next report of the watcher. */
async function watched(path: string) {
  const provider = fileRules(path)
  await provider.load().catch(() => {})
  const reports: unknown[] = []
  let wake = () => {}
  const report = (what: unknown) => {
    reports.push(what)
    wake()
  }
  stop = provider.watch?.(() => report('changed'), report) ?? stop
  const next = async (): Promise<unknown> => {
    while (reports.length === 0) await new Promise<void>((resolve) => (wake = resolve))
    return reports.shift()
  }
  return { provider, reports, next }
}

describe('watching a rules file', () => {
  it('reports an edit in place', async () => {
    const path = join(directory, 'rules.yaml')
    await writeFile(path, rules(5))
    const { provider, next } = await watched(path)
    for (const capacity of [6, 7, 8]) {
      const file = await open(path, 'r+')
      await file.write(rules(capacity))
      await file.close()
      expect(await next()).toBe('changed')
      expect(await capacityOf(provider)).toBe(capacity)
    }
  })

  it('reports each replacement of the file', async () => {
    const path = join(directory, 'rules.yaml')
    await writeFile(path, rules(5))
    const { provider, next } = await watched(path)
    for (const capacity of [6, 7, 8]) {
      await writeFile(`${path}.tmp`, rules(capacity))
      await rename(`${path}.tmp`, path)
      expect(await next()).toBe('changed')
      expect(await capacityOf(provider)).toBe(capacity)
    }
  })

  it('reports when the file is removed and created again', async () => {
    const path = join(directory, 'rules.yaml')
    await writeFile(path, rules(5))
    const { provider, next } = await watched(path)
    for (const capacity of [5, 6]) {
      await unlink(path)
      expect(await next()).toMatchObject({ code: 'FLUXGATE_RULES_UNREADABLE' })
      await writeFile(path, rules(capacity))
      expect(await next()).toBe('changed')
      expect(await capacityOf(provider)).toBe(capacity)
    }
  })

  it('reports a swapped symbolic link, as in a Kubernetes ConfigMap update', async () => {
    for (const version of [1, 2, 3]) {
      await mkdir(join(directory, `..v${version}`))
      await writeFile(join(directory, `..v${version}`, 'rules.yaml'), rules(version))
    }
    await symlink('..v1', join(directory, '..data'))
    const path = join(directory, 'rules.yaml')
    await symlink(join('..data', 'rules.yaml'), path)
    const { provider, next } = await watched(path)
    for (const version of [2, 3]) {
      await symlink(`..v${version}`, join(directory, '..tmp'))
      await rename(join(directory, '..tmp'), join(directory, '..data'))
      expect(await next()).toBe('changed')
      expect(await capacityOf(provider)).toBe(version)
    }
  })

  it('reports an edit of the target of a symbolic link, and a replaced directory', async () => {
    await mkdir(join(directory, 'a'))
    await mkdir(join(directory, 'b'))
    const path = join(directory, 'a', 'rules.yaml')
    await writeFile(join(directory, 'b', 'real.yaml'), rules(5))
    await symlink(join(directory, 'b', 'real.yaml'), path)
    const { provider, next } = await watched(path)
    await writeFile(join(directory, 'b', 'real.yaml'), rules(6))
    expect(await next()).toBe('changed')
    await mkdir(join(directory, 'c'))
    await writeFile(join(directory, 'c', 'real.yaml'), rules(7))
    await rename(join(directory, 'b'), join(directory, 'old'))
    await rename(join(directory, 'c'), join(directory, 'b'))
    // Between the two there is no file, which the watcher may report first.
    const report = await next()
    if (report !== 'changed') {
      expect(report).toMatchObject({ code: 'FLUXGATE_RULES_UNREADABLE' })
      expect(await next()).toBe('changed')
    }
    expect(await capacityOf(provider)).toBe(7)
  })

  it('reports a change between loading and watching', async () => {
    const path = join(directory, 'rules.yaml')
    await writeFile(path, rules(5))
    const provider = fileRules(path)
    await provider.load()
    await writeFile(path, rules(6))
    const report = await new Promise((resolve) => {
      stop = provider.watch?.(() => resolve('changed'), resolve) ?? stop
    })
    expect(report).toBe('changed')
  })

  it('reports nothing if the content is the same or another file changes', async () => {
    const path = join(directory, 'rules.yaml')
    await writeFile(path, rules(5))
    const { reports, next } = await watched(path)
    await writeFile(`${path}.tmp`, rules(5))
    await rename(`${path}.tmp`, path)
    // Both watch the same directory, so once this one has seen its file change, both have checked.
    const other = fileRules(join(directory, 'other.yaml'))
    const otherSeen = new Promise<void>((resolve) => {
      const stopFirst = stop
      const stopOther = other.watch?.(resolve, () => void writeFile(join(directory, 'other.yaml'), 'x'))
      stop = () => {
        stopFirst()
        stopOther?.()
      }
    })
    await otherSeen
    expect(reports).toEqual([])
    await writeFile(path, rules(6))
    expect(await next()).toBe('changed')
    expect(reports).toEqual([])
  })

  it('does not keep the process alive', async () => {
    const keepingAlive = (kind: string) => process.getActiveResourcesInfo().filter((name) => name === kind).length
    const path = join(directory, 'rules.yaml')
    await writeFile(path, rules(5))
    const timers = keepingAlive('Timeout')
    const { next } = await watched(path)
    await writeFile(`${path}.tmp`, rules(6))
    await rename(`${path}.tmp`, path)
    await next()
    expect(keepingAlive('FSEventWrap')).toBe(0)
    expect(keepingAlive('Timeout')).toBeLessThanOrEqual(timers)
  })

  it('reports nothing after it was stopped', async () => {
    const path = join(directory, 'rules.yaml')
    await writeFile(path, rules(5))
    const { provider, reports } = await watched(path)
    stop()
    const other = new Promise<void>((resolve) => {
      stop = provider.watch?.(resolve, () => {}) ?? stop
    })
    await writeFile(path, rules(6))
    await other
    expect(reports).toEqual([])
  })

  it('reports a change to each of two watchers', async () => {
    const path = join(directory, 'rules.yaml')
    await writeFile(path, rules(5))
    const provider = fileRules(path)
    await provider.load()
    const stops: ((() => void) | undefined)[] = []
    const seen = [0, 1].map(
      () =>
        new Promise<void>((resolve) =>
          stops.push(
            provider.watch?.(
              () => void provider.load().then(() => resolve()),
              () => {},
            ),
          ),
        ),
    )
    stop = () => {
      for (const stopOne of stops) stopOne?.()
    }
    await writeFile(path, rules(6))
    await Promise.all(seen)
  })

  it('reports a missing file as an error, once', async () => {
    const { next, reports } = await watched(join(directory, 'none', 'rules.yaml'))
    expect(await next()).toBeInstanceOf(FluxGateError)
    expect(reports).toEqual([])
    await mkdir(join(directory, 'none'))
    await writeFile(join(directory, 'none', 'rules.yaml'), rules(5))
    expect(await next()).toBe('changed')
  })
})
