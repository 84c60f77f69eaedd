/** The build for edge runtimes: bundled as an application would, measured, and run without any API of Node. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createContext, runInContext } from 'node:vm'
import { gzipSync } from 'node:zlib'
import { rolldown } from 'rolldown'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const directory = mkdtempSync(join(tmpdir(), 'fluxgate-edge-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const program = `
  import { createFluxGate, createLimiter } from 'fluxgate-js'
  import { rateLimit } from 'fluxgate-js/fetch'
  export { createFluxGate, createLimiter, rateLimit }`

interface Bundle {
  readonly code: string
  readonly imports: readonly string[]
}

async function bundled(source: string, conditionNames: string[]): Promise<Bundle> {
  const input = join(directory, `${conditionNames.join('-')}.mjs`)
  writeFileSync(input, source)
  const build = await rolldown({
    input,
    platform: 'neutral',
    resolve: { conditionNames: [...conditionNames, 'import'], alias: entriesFor(conditionNames) },
  })
  const { output } = await build.generate({ format: 'iife', name: 'fluxgate', minify: true })
  await build.close()
  expect(output).toHaveLength(1)
  return { code: output[0].code, imports: output[0].imports }
}

/** The package resolves itself by name only from inside, so the entries are resolved as its exports say. */
function entriesFor(conditions: readonly string[]): Record<string, string> {
  const { exports } = manifest
  const target = (entry: string): string => {
    const targets = exports[entry] as Record<string, string>
    const name = Object.keys(targets).find((condition) => conditions.includes(condition)) ?? 'default'
    return join(root, targets[name] as string)
  }
  return { 'fluxgate-js/fetch': target('./fetch'), 'fluxgate-js/hono': target('./hono'), 'fluxgate-js': target('.') }
}

const { default: manifest } = (await import('../package.json', { with: { type: 'json' } })) as {
  default: { exports: Record<string, unknown> }
}

function unsupported(name: string): never {
  throw new Error(`process.${name} is not supported in the edge runtime.`)
}

describe.each([['workerd'], ['edge-light'], ['browser']])(
  'a program with a memory limit, bundled for %s',
  (condition) => {
    let bundle: Bundle
    beforeAll(async () => {
      bundle = await bundled(program, [condition])
    })

    it('imports nothing', () => {
      expect(bundle.imports).toEqual([])
    })

    it('contains no Redis code and stays below its budget', () => {
      expect(bundle.code).not.toMatch(/EVALSHA|redis\.call|ioredis'/)
      expect(bundle.code.length).toBeLessThan(204_000)
      expect(gzipSync(bundle.code).length).toBeLessThan(72_000)
    })

    it('limits requests with the API of the web alone', async () => {
      const web = {
        Request,
        Response,
        Headers,
        URL,
        TextEncoder,
        AbortController,
        performance,
        setTimeout,
        btoa,
        console,
      }
      // As in Next.js, where the functions of `process` exist and throw.
      const process = new Proxy({}, { get: (_, name) => () => unsupported(String(name)) })
      const context = createContext({ ...web, process })
      const { createFluxGate, createLimiter, rateLimit } = runInContext(`${bundle.code}; fluxgate`, context)
      const limit = rateLimit({ capacity: 1, window: '1h' })
      const request = new Request('https://example.com/')
      const origin = { remoteAddress: '192.0.2.1' }
      expect(await limit(request, origin)).toBeNull()
      expect(await limit(request, origin)).toMatchObject({ status: 429 })

      const limiter = createLimiter({ capacity: 2, window: '1h' })
      const longKey = 'x'.repeat(200)
      expect([1, 2, 3].map(() => limiter.consumeSync(longKey).allowed)).toEqual([true, true, false])
      expect(limiter.consumeSync('other').resetAt).toBeGreaterThan(Date.now())
      expect(() => createLimiter({ capacity: 1, window: '1s', store: 'redis://127.0.0.1' })).toThrow(
        /Redis needs Node\.js/,
      )
      expect(() => createFluxGate()).toThrow(expect.objectContaining({ code: 'FLUXGATE_RUNTIME_UNSUPPORTED' }))
    })
  },
)
