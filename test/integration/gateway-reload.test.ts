import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/app/config.js'
import { createGateway } from '../../src/app/create-gateway.js'
import { watchRoutes } from '../../src/app/gateway-reload.js'

const cwd = mkdtempSync(join(tmpdir(), 'fluxgate-'))
afterAll(() => rmSync(cwd, { recursive: true }))

function writeRoutes(...ids: string[]): void {
  const routes = ids.map((id) => ({ id, uri: 'http://127.0.0.1:1', predicates: [`Path=/${id}`] }))
  writeFileSync(join(cwd, 'fluxgate.yaml'), JSON.stringify({ gateway: { routes } }))
}

describe('routes that are edited while the gateway starts', () => {
  it('are taken over: nothing is lost between reading the file and watching it', async () => {
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
