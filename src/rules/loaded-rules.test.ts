import { mkdtemp, rename, rm, unlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { RuleSetProvider } from '../core/contracts/rule-set-provider.js'
import type { RuleSet } from '../core/rule.js'
import { fileRules } from './file-provider.js'
import { LoadedRules, type ReloadResult } from './loaded-rules.js'
import { objectRules } from './object-provider.js'
import { watchReload } from './reload/watch-reload.js'
import { parseRuleSets } from './schema/parse-rules.js'

const document = (capacity: unknown) => ({ id: 's', rules: [{ id: 'r', bands: [{ capacity, window: '1s' }] }] })
const capacityOf = (ruleSets: readonly RuleSet[]) => ruleSets[0]?.rules[0]?.bands[0]?.capacity

/** A provider whose loads the test completes. */
function slowProvider(): { provider: RuleSetProvider; loads: (() => void)[] } {
  const loads: (() => void)[] = []
  const load = () => new Promise<RuleSet[]>((resolve) => loads.push(() => resolve([])))
  return { provider: { source: 'slow', load }, loads }
}

describe('LoadedRules', () => {
  it('opens with rules, or throws', async () => {
    const loadedRules = await LoadedRules.open(objectRules(document(5), 'objects'), { clock: { now: () => 1_000 } })
    expect(capacityOf(loadedRules.current)).toBe(5)
    expect(loadedRules.status()).toEqual({
      source: 'objects',
      ruleSets: 1,
      rules: 1,
      changedAt: 1_000,
      loadedAt: 1_000,
      failure: null,
    })
    await expect(LoadedRules.open(objectRules(document('x')))).rejects.toMatchObject({ code: 'FLUXGATE_RULES_INVALID' })
  })

  it('replaces changed rules and leaves the old list unchanged', async () => {
    let now = 1_000
    const objects = document(5)
    const loadedRules = await LoadedRules.open(objectRules(objects), { clock: { now: () => now } })
    const before = loadedRules.current
    now = 2_000
    expect(await loadedRules.reload()).toEqual({ changed: false, ruleSets: before })
    expect(loadedRules.current).toBe(before)
    expect(loadedRules.status()).toMatchObject({ changedAt: 1_000, loadedAt: 2_000 })
    now = 3_000
    objects.rules = document(6).rules
    expect(await loadedRules.reload()).toMatchObject({ changed: true })
    expect(capacityOf(loadedRules.current)).toBe(6)
    expect(capacityOf(before)).toBe(5)
    expect(loadedRules.status()).toMatchObject({ changedAt: 3_000, loadedAt: 3_000 })
  })

  it('does not report a change if equal rules are written differently', async () => {
    const objects = document(5) as { rules: unknown[] }
    const loadedRules = await LoadedRules.open(objectRules(objects))
    objects.rules = [{ bands: [{ windowSeconds: 1, refillTokens: 5, capacity: 5 }], scope: 'PER_IP', id: 'r' }]
    expect(await loadedRules.reload()).toMatchObject({ changed: false })
  })

  it('keeps the rules if a reload fails, and reports when and why', async () => {
    let now = 1_000
    const objects = document(5)
    const loadedRules = await LoadedRules.open(objectRules(objects), { clock: { now: () => now } })
    objects.rules = document('x').rules
    now = 2_000
    expect(await loadedRules.reload()).toMatchObject({ error: { code: 'FLUXGATE_RULES_INVALID' } })
    now = 3_000
    await loadedRules.reload()
    expect(capacityOf(loadedRules.current)).toBe(5)
    expect(loadedRules.status()).toMatchObject({
      loadedAt: 1_000,
      failure: { sinceAt: 2_000, error: { code: 'FLUXGATE_RULES_INVALID' } },
    })
    objects.rules = document(5).rules
    now = 4_000
    expect(await loadedRules.reload()).toMatchObject({ changed: false })
    expect(loadedRules.status()).toMatchObject({ loadedAt: 4_000, failure: null })
  })

  it('wraps errors of custom providers', async () => {
    const cause = new TypeError('no such host')
    const provider: RuleSetProvider = {
      source: 'elsewhere',
      load() {
        throw cause
      },
    }
    await expect(LoadedRules.open(provider)).rejects.toMatchObject({
      code: 'FLUXGATE_RULES_UNREADABLE',
      message: 'Rules could not be loaded from elsewhere: no such host',
      cause,
    })
  })

  it('rejects rules that are not parsed, with their paths, and keeps the current rules', async () => {
    const written = [{ id: 's', strategy: 'all', rules: [{ id: 'r', bands: [{ capacity: 5, window: '1s' }] }] }]
    let loaded: unknown = parseRuleSets(written)
    const loadedRules = await LoadedRules.open({ source: 'elsewhere', load: async () => loaded as RuleSet[] })
    const allowed = 'rule sets returned by parseRuleSets'
    for (const [unread, path, found] of [
      [written, 'ruleSets[0].rules[0]', 'an object'],
      [[{ id: 's', rules: [] }], 'ruleSets[0]', 'an object'],
      [[null], 'ruleSets[0]', 'null'],
      [{ ruleSets: [] }, 'ruleSets', 'an object'],
      [undefined, 'ruleSets', 'nothing'],
    ] as const) {
      loaded = unread
      const result = await loadedRules.reload()
      const error = 'error' in result ? result.error : undefined
      expect(error).toMatchObject({ code: 'FLUXGATE_RULES_INVALID' })
      expect(error?.errors).toEqual([{ path, message: `must be ${allowed}; received ${found}` }])
    }
    expect(loadedRules.current[0]?.rules[0]?.bands[0]?.capacity).toBe(5)
  })

  it('rejects rules that do not meet the requirement, and keeps the current rules', async () => {
    const objects = document(5)
    const message = 'more than 9 is not for us'
    const loadedRules = await LoadedRules.open(objectRules(objects, 'objects'), {
      requirement: (ruleSets) => (Number(capacityOf(ruleSets)) > 9 ? [{ path: 'ruleSets[0].rules[0]', message }] : []),
    })
    Object.assign(objects, document(10))
    expect(await loadedRules.reload()).toMatchObject({
      error: { code: 'FLUXGATE_RULES_INVALID', message: `objects: 1 error\n  ruleSets[0].rules[0]: ${message}` },
    })
    expect(capacityOf(loadedRules.current)).toBe(5)
    Object.assign(objects, document(9))
    expect(await loadedRules.reload()).toMatchObject({ changed: true })
  })

  it('shares one further load among all reloads requested during a load, so that none returns older rules', async () => {
    const { provider, loads } = slowProvider()
    const opening = LoadedRules.open(provider)
    loads[0]?.()
    const loadedRules = await opening
    const first = loadedRules.reload()
    const others = [loadedRules.reload(), loadedRules.reload(), loadedRules.reload()]
    expect(loads).toHaveLength(2)
    loads[1]?.()
    await first
    await Promise.resolve()
    expect(loads).toHaveLength(3)
    const late = loadedRules.reload()
    loads[2]?.()
    await Promise.all(others)
    await Promise.resolve()
    expect(loads).toHaveLength(4)
    loads[3]?.()
    await late
    const afterwards = loadedRules.reload()
    expect(loads).toHaveLength(5)
    loads[4]?.()
    await afterwards
  })

  it('calls listeners with the result of each reload until they unsubscribe', async () => {
    const objects = document(5)
    const loadedRules = await LoadedRules.open(objectRules(objects))
    const heard: string[] = []
    const leave = loadedRules.onReload((result) =>
      heard.push('error' in result ? result.error.code : `changed: ${result.changed}`),
    )
    await loadedRules.reload()
    objects.rules = document(6).rules
    await loadedRules.reload()
    objects.rules = document(-1).rules
    await loadedRules.reload()
    leave()
    await loadedRules.reload()
    expect(heard).toEqual(['changed: false', 'changed: true', 'FLUXGATE_RULES_INVALID'])
  })

  it('calls listeners after a poll only for a change, an error or a recovery', async () => {
    const objects = document(5)
    const loadedRules = await LoadedRules.open(objectRules(objects))
    const heard: string[] = []
    loadedRules.onReload((result) => heard.push('error' in result ? result.error.code : `changed: ${result.changed}`))
    for (let i = 0; i < 30; i++) await loadedRules.reload({ poll: true })
    expect(heard).toEqual([])
    for (const capacity of [6, -1, 6, 6]) {
      objects.rules = document(capacity).rules
      await loadedRules.reload({ poll: true })
    }
    expect(heard).toEqual(['changed: true', 'FLUXGATE_RULES_INVALID', 'changed: false'])
    // A reload requested during a poll calls the listeners, even if another poll is requested too.
    await Promise.all([loadedRules.reload({ poll: true }), loadedRules.reload({ poll: true }), loadedRules.reload()])
    expect(heard.slice(3)).toEqual(['changed: false'])
  })
})

describe('LoadedRules with a watched file', () => {
  let directory: string
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'fluxgate-'))
  })
  afterEach(() => rm(directory, { recursive: true, force: true }))

  it('applies valid edits, and keeps the old rules and reports an error for invalid ones', async () => {
    const path = join(directory, 'rules.json')
    const write = async (capacity: unknown) => {
      await writeFile(`${path}.tmp`, JSON.stringify(document(capacity)))
      await rename(`${path}.tmp`, path)
    }
    await write(5)
    const provider = fileRules(path)
    const loadedRules = await LoadedRules.open(provider)
    const heard: ReloadResult[] = []
    let wake = () => {}
    loadedRules.onReload((result) => {
      heard.push(result)
      wake()
    })
    const next = async () => {
      while (heard.length === 0) await new Promise<void>((resolve) => (wake = resolve))
      return heard.shift()
    }
    const stop = watchReload(provider).start(async () => void (await loadedRules.reload()))
    try {
      await write(6)
      expect(await next()).toMatchObject({ changed: true })
      expect(capacityOf(loadedRules.current)).toBe(6)

      await write('seven')
      expect(await next()).toMatchObject({ error: { errors: [{ path: 'ruleSets[0].rules[0].bands[0].capacity' }] } })
      expect(capacityOf(loadedRules.current)).toBe(6)

      await unlink(path)
      expect(await next()).toMatchObject({ error: { code: 'FLUXGATE_RULES_UNREADABLE' } })
      expect(capacityOf(loadedRules.current)).toBe(6)
      expect(loadedRules.status().failure?.error.code).toBe('FLUXGATE_RULES_UNREADABLE')

      await write(7)
      expect(await next()).toMatchObject({ changed: true })
      expect(capacityOf(loadedRules.current)).toBe(7)
      expect(loadedRules.status().failure).toBeNull()
    } finally {
      stop()
    }
  })
})
