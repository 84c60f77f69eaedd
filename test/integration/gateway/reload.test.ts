import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { loadConfig } from '../../../src/config/config.js'
import { messageOf } from '../../../src/core/errors.js'
import { createGateway } from '../../../src/program/gateway/create-gateway.js'
import { watchRoutes } from '../../../src/program/gateway/reload.js'
import { echoUpstream, gatewayWith, statuses } from '../../fixtures/test-gateway.js'

const cwd = mkdtempSync(join(tmpdir(), 'fluxgate-'))
afterAll(() => rmSync(cwd, { recursive: true }))

/** Returns the folder of the configuration file. */
function writtenRoutes(routes: readonly object[]): string {
  writeFileSync(join(cwd, 'fluxgate.yaml'), JSON.stringify({ gateway: { routes } }))
  return cwd
}

const writeRoutes = (...ids: string[]): string =>
  writtenRoutes(ids.map((id) => ({ id, uri: 'http://127.0.0.1:1', predicates: [`Path=/${id}`] })))

describe('routes edited while the gateway starts', () => {
  it('are applied: no change is lost between reading and watching the file', async () => {
    writeRoutes('one')
    const load = () => loadConfig({ env: {}, cwd })
    const config = await load()
    const running = await createGateway(config)
    writeRoutes('one', 'two')
    const watch = await new Promise<{ routeCount: number; stop(): void }>((resolve) => {
      const routesOf = ({ gateway }: typeof config) => gateway.routes ?? []
      const { stop } = watchRoutes({
        config,
        running,
        load,
        routesOf,
        onReload: ({ routeCount, needsRestart, error }) => {
          expect([needsRestart, error]).toEqual([false, null])
          resolve({ routeCount, stop })
        },
      })
    })
    expect(watch.routeCount).toBe(2)
    watch.stop()
    await running.close()
  })
})

describe('reloaded rules without a rule set that a route refers to', () => {
  const ruleSet = (id: string, capacity = 2) => ({ id, rules: [{ id: 'each', bands: [{ capacity, window: '1h' }] }] })

  /** A gateway whose rules are edited by writing their file and loading it. */
  async function edited(filters: readonly string[], ...ruleSets: object[]) {
    const { url: uri } = await echoUpstream()
    const gateway = await gatewayWith({ routes: [{ id: 'shop', uri, filters }], rules: { ruleSets } })
    const edit = async (...next: object[]): Promise<unknown> => {
      writeFileSync(gateway.rulesFile, JSON.stringify({ ruleSets: next }))
      return await gateway.running.gate.reload().then(() => undefined, messageOf)
    }
    return { ...gateway, uri, edit }
  }

  it('are rejected, and the route keeps its limit', async () => {
    const { url, edit } = await edited(['RateLimiter=shop'], ruleSet('shop'), ruleSet('other'))
    expect(await edit(ruleSet('other'))).toMatch(/"shop" is missing, but route "shop" uses it\. Restore/)
    expect(await edit()).toMatch(/"shop" is missing/)
    expect(await statuses(url, 3)).toEqual([200, 200, 429])
    expect(await edit(ruleSet('shop', 3))).toBeUndefined()
    expect(await statuses(url, 4)).toEqual([200, 200, 200, 429])
  })

  it('are rejected if several rule sets remain and none is the default', async () => {
    const { url, edit } = await edited([], ruleSet('shop'))
    expect(await edit(ruleSet('shop'), ruleSet('other'))).toMatch(
      /the default rule set, which limits route "shop", no longer exists/,
    )
    expect(await statuses(url, 3)).toEqual([200, 200, 429])
    expect(await edit(ruleSet('other', 1), ruleSet('default', 1))).toBeUndefined()
    expect(await statuses(url, 2)).toEqual([200, 429])
    expect(await edit()).toBeUndefined()
    expect(await statuses(url, 2)).toEqual([200, 200])
  })

  it('are applied once the route no longer refers to it', async () => {
    const { url, uri, running, edit } = await edited(['RateLimiter=shop'], ruleSet('shop'), ruleSet('other', 1))
    expect(await edit(ruleSet('other', 3))).toMatch(/"shop" is missing/)
    const filters = [{ name: 'RateLimiter', args: { ruleSet: 'other' } }]
    const { gateway } = await loadConfig({ env: {}, cwd: writtenRoutes([{ id: 'shop', uri, filters }]) })
    await running.setRoutes(gateway.routes ?? [])
    expect(await statuses(url, 4)).toEqual([200, 200, 200, 429])
  })
})
