/** The batteries report each defect of a proxy that has it, and nothing of one that has none. */
import { expect, it } from 'vitest'
import { type Defect, startBrokenProxy } from './broken-proxy.js'
import { GatewayBed } from './run.js'

async function kindsOf(defect: Defect, battery: string): Promise<Set<string>> {
  const bed = await GatewayBed.start(startBrokenProxy(defect))
  try {
    const kinds = new Set<string>()
    for (let seed = 1; seed <= 3; seed++)
      for (const { kind } of (await bed.run(battery, seed)).violations) kinds.add(kind)
    return kinds
  } finally {
    await bed.stop()
  }
}

it.each<[Defect, string, string]>([
  ['smuggle', 'framing', 'desynchronisation'],
  ['cross', 'valid', 'crossed answer'],
  ['repeat', 'valid', 'ran twice'],
  ['cut body', 'valid', 'changed body'],
  ['extra bytes', 'valid', 'unasked bytes'],
  ['cut response', 'valid', 'truncated response'],
  ['crash', 'valid', 'crash'],
])('a proxy with the defect "%s" is reported by the battery "%s" as %s', async (defect, battery, kind) => {
  expect(await kindsOf(defect, battery)).toContain(kind)
})

it.each(['valid', 'framing'])('a proxy without a defect passes the battery "%s"', async (battery) => {
  expect([...(await kindsOf('none', battery))].filter((kind) => kind !== 'hop-by-hop header')).toEqual([])
})
