import { appendFile, mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { parseJson } from '../../core/json/source-text.js'
import type { NumberedEntry } from '../store/rule-storage.js'
import { appendHistory, readHistory } from './history.js'

let directory: string
let file: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'fluxgate-'))
  file = join(directory, 'rules.yaml.history.jsonl')
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const entry = (setVersion: number, after: unknown = null, ruleSetId = 'api'): NumberedEntry => ({
  setVersion,
  entry: {
    at: '2026-01-31T12:00:00.000Z',
    by: 'ann',
    action: 'PUT_SET',
    ruleSetId,
    ruleId: null,
    version: setVersion,
    before: null,
    after,
  },
})

const versions = async (below = 1_000, limit = 100, ruleSetId = 'api') =>
  (await readHistory(file, ruleSetId, below, limit)).map(({ setVersion }) => setVersion)

it('returns the changes of a set, newest first, in pages', async () => {
  expect(await versions()).toEqual([])
  await appendHistory(file, [entry(1), entry(2), entry(1, null, 'other')])
  await appendHistory(file, [entry(3)])
  expect(await versions()).toEqual([3, 2, 1])
  expect(await versions(3, 1)).toEqual([2])
  expect(await versions(1_000, 100, 'other')).toEqual([1])
})

it('skips a line that was cut short', async () => {
  await appendHistory(file, [entry(1)])
  await appendFile(file, '{"setVersion":2,"entry":{"at":"20\n\n')
  await appendHistory(file, [entry(3)])
  expect(await versions()).toEqual([3, 1])
})

it('keeps an entry on one line, and attributes to the byte but for line breaks', async () => {
  const rules = parseJson('{"rules":[{"attributes":{\n "n": 1.0,\r\n  "big":12345678901234567890}}]}')
  await appendHistory(file, [entry(1, rules)])
  const lines = (await readFile(file, 'utf8')).split('\n')
  expect(lines).toHaveLength(2)
  expect(lines[0]).toContain('"attributes":{ "n": 1.0, "big":12345678901234567890}')
})

it('drops older entries above 4 MiB, and never the newest one', async () => {
  const half = { text: 'é'.repeat(2 ** 20) }
  for (let version = 1; version <= 3; version++) await appendHistory(file, [entry(version, half)])
  expect(await versions()).toEqual([3])
  await appendHistory(file, [entry(4), entry(5)])
  expect(await versions()).toEqual([5, 4, 3])
  await appendHistory(file, [entry(6, { text: 'x'.repeat(5 * 2 ** 20) })])
  expect(await versions()).toEqual([6])
  expect((await stat(file)).size).toBeGreaterThan(5 * 2 ** 20)
})
