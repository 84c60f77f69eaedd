import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { fileRuleStore } from '../file/file-rule-store.js'
import { copyRules, exportRules, importRules } from './copy-rules.js'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'fluxgate-'))
})
afterEach(() => rm(directory, { recursive: true }))

async function storeWith(name: string, text: string) {
  await writeFile(join(directory, name), text)
  return fileRuleStore(join(directory, name))
}

const rule = (id: string, more = '') => `{ id: ${id}, ${more} bands: [{ capacity: 1, window: 1s }] }`

describe('copying rules', () => {
  it('copies every rule set to another store and reports the changes', async () => {
    const from = await storeWith(
      'from.yaml',
      `- { id: a, rules: [${rule('r', 'attributes: { z: 1, a: [null] },')}] }\n- { id: b, strategy: first, rules: [] }\n`,
    )
    const to = await storeWith('to.json', '{ "ruleSets": [{ "id": "b", "rules": [] }, { "id": "c", "rules": [] }] }')
    expect(await copyRules(from, to, { by: 'ann' })).toEqual({
      created: ['a'],
      changed: ['b'],
      unchanged: [],
      removed: [],
    })
    expect(await copyRules(from, to, { by: 'ann', removeOthers: true })).toEqual({
      created: [],
      changed: [],
      unchanged: ['a', 'b'],
      removed: ['c'],
    })
    expect(await exportRules(to)).toEqual(await exportRules(from))
    expect(JSON.stringify((await to.getRule('a', 'r'))?.attributes)).toBe('{"z":1,"a":[null]}')
  })

  it('writes nothing if any rule set is invalid', async () => {
    const text = '{ "ruleSets": [] }'
    const to = await storeWith('to.json', text)
    const document = [
      { id: 'a', rules: [] },
      { id: 'b', rules: [{ id: 'r', bands: [] }] },
    ]
    await expect(importRules(document, to, { by: 'ann' })).rejects.toMatchObject({
      code: 'FLUXGATE_RULES_INVALID',
      errors: [{ path: 'ruleSets[1].rules[0].bands' }],
    })
    expect(await readFile(join(directory, 'to.json'), 'utf8')).toBe(text)
  })

  it('copies more rule sets than fit on a page', async () => {
    const sets = Array.from({ length: 250 }, (_, i) => ({ id: `set-${i}`, rules: [] }))
    const from = await storeWith('from.json', JSON.stringify(sets))
    expect((await exportRules(from)).ruleSets).toHaveLength(250)
  })
})
