import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { manualClock } from '../testing/manual-clock.js'
import { createFluxGate } from './create-flux-gate.js'
import type { GateEvents } from './events.js'

const start = 1_800_000_000_000

describe('a rules file', () => {
  const text = (capacity: number | string): string =>
    `id: api\nrules:\n  - id: rule\n    bands: [{ capacity: ${capacity}, window: 1h }]\n`

  it('takes effect when it is edited; an invalid edit keeps the previous rules and reports the error', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'fluxgate-'))
    const path = join(folder, 'rules.yaml')
    await writeFile(path, text(1))
    const gate = await createFluxGate({ rules: path })
    try {
      const reloads: GateEvents['reload'][] = []
      let heard = (): void => {}
      gate.on('reload', (event) => {
        reloads.push(event)
        heard()
      })
      const edit = async (content: string): Promise<GateEvents['reload'] | undefined> => {
        const next = new Promise<void>((resolve) => {
          heard = resolve
        })
        await writeFile(`${path}.new`, content)
        await rename(`${path}.new`, path)
        await next
        return reloads.at(-1)
      }
      await gate.check({})
      expect((await gate.check({})).allowed).toBe(false)
      expect(await edit(text(5))).toEqual({ changed: true, error: null })
      expect(await gate.check({})).toMatchObject({ allowed: true, limit: 5, remaining: 4 })
      expect(await edit(text('lots'))).toMatchObject({ changed: false, error: { code: 'FLUXGATE_RULES_INVALID' } })
      expect(await gate.check({})).toMatchObject({ allowed: true, limit: 5, remaining: 3 })
      expect(await gate.health()).toMatchObject({
        status: 'DEGRADED',
        rules: { status: 'STALE', reload: 'WATCH', error: expect.stringContaining('capacity') },
      })
      await expect(gate.reload()).rejects.toMatchObject({ code: 'FLUXGATE_RULES_INVALID' })
      expect(await edit(text(5))).toEqual({ changed: false, error: null })
      expect((await gate.health()).status).toBe('UP')
      expect(await gate.check({})).toMatchObject({ limit: 5, remaining: 2 })
    } finally {
      await gate.close()
      await rm(folder, { recursive: true })
    }
  })

  it('keeps the levels of an edited rule without resetBucketsOnReload, clamped to the new capacity', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'fluxgate-'))
    const path = join(folder, 'rules.yaml')
    const clock = manualClock(start)
    const labelled = (capacity: number): string => text(capacity).replace('{ ', '{ label: hour, ')
    const leftAfter = async (resetBucketsOnReload: boolean): Promise<number> => {
      await writeFile(path, labelled(10))
      const gate = await createFluxGate({ rules: path, clock, reload: { strategy: 'NONE', resetBucketsOnReload } })
      await gate.check({}, { permits: 8 })
      await writeFile(path, labelled(5))
      await gate.reload()
      const { remaining } = await gate.check({}, { peek: true })
      await gate.close()
      return remaining
    }
    expect(await leftAfter(true)).toBe(4)
    expect(await leftAfter(false)).toBe(1)
    await rm(folder, { recursive: true })
  })

  it('that is missing is an error that names the path', async () => {
    await expect(createFluxGate({ rules: '/nowhere/rules.yaml' })).rejects.toMatchObject({
      code: 'FLUXGATE_RULES_UNREADABLE',
      message: expect.stringContaining('/nowhere/rules.yaml'),
    })
    await expect(createFluxGate({})).rejects.toMatchObject({ code: 'FLUXGATE_CONFIG_INVALID' })
    await expect(createFluxGate({ rules: [], store: 'disk' })).rejects.toThrow(
      /store must be "memory".*received "disk"/,
    )
  })
})
