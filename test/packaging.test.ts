/**
 * Packs the package, installs it as the only dependency of a project, and loads, compiles and runs it there. Dependencies of
 * FluxGate are linked from this repository, so no network is needed.
 */
import { execFile } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { publint } from 'publint'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const project = mkdtempSync(join(tmpdir(), 'fluxgate-packaging-'))
const installed = join(project, 'node_modules', 'fluxgate-js')

/** `fluxgate-js`, `fluxgate-js/handlers`, …: every module in exports. */
const entries = Object.keys(manifest.exports)
  .filter((subpath) => !subpath.endsWith('.json'))
  .map((subpath) => subpath.replace(/^\./, 'fluxgate-js'))

let tarball: string
let files: string[]

beforeAll(async () => {
  expect(await run(process.execPath, [join(root, 'scripts/bootstrap.mjs')], root)).toMatchObject({ status: 0 })
  const packed = await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', project], root)
  expect(packed.status, packed.stderr).toBe(0)
  const [{ filename, files: contents }] = JSON.parse(packed.stdout)
  tarball = join(project, filename)
  files = contents.map((file: { path: string }) => file.path)

  mkdirSync(installed, { recursive: true })
  expect(await run('tar', ['-xzf', tarball, '--strip-components=1', '-C', installed])).toMatchObject({ status: 0 })
  for (const name of [...Object.keys(manifest.dependencies), '@types/node']) link(name)
  for (const [name, file] of Object.entries(manifest.bin)) {
    mkdirSync(join(project, 'node_modules/.bin'), { recursive: true })
    symlinkSync(join(installed, String(file)), join(project, 'node_modules/.bin', name))
  }
  write('package.json', JSON.stringify({ name: 'consumer', private: true, type: 'module' }))
}, 120_000)

afterAll(() => rmSync(project, { recursive: true, force: true }))

function link(name: string): void {
  mkdirSync(dirname(join(project, 'node_modules', name)), { recursive: true })
  symlinkSync(join(root, 'node_modules', name), join(project, 'node_modules', name))
}

const write = (file: string, text: string): void => writeFileSync(join(project, file), text)

interface Result {
  readonly status: number
  readonly stdout: string
  readonly stderr: string
}

function run(command: string, args: readonly string[], cwd = project): Promise<Result> {
  const options = { cwd, maxBuffer: 64 * 1024 * 1024, env: { ...process.env, NODE_OPTIONS: '' } }
  return new Promise((resolve) => {
    execFile(command, args, options, (error, stdout, stderr) => {
      resolve({ status: error ? Number(error.code ?? 1) : 0, stdout, stderr })
    })
  })
}

/** Runs a program in the consuming project and parses its output as JSON. */
async function evaluate(file: string, source: string): Promise<unknown> {
  write(file, source)
  const { status, stdout, stderr } = await run(process.execPath, [file])
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  return JSON.parse(stdout)
}

describe('the tarball', () => {
  it('contains the code, its types and the documentation, and nothing else', () => {
    const code =
      /^(package\.json|dist\/.+\.(js|d\.ts)|dist\/(command|console)\/LICENSES\.txt|dist\/playground\.html|dist\/console\/.+\.(html|css|svg))$/
    const documentation =
      /^(LICENSE|(README|ARCHITECTURE|CHANGELOG|CONTRIBUTING|SECURITY)\.md|bench\/RESULTS\.md|rules\.yaml|(docs|examples)\/.+)$/
    expect(files).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'SECURITY.md', 'package.json']))
    expect(files.filter((file) => !code.test(file) && !documentation.test(file))).toEqual([])
    expect(files.filter((file) => file.includes('.test.') || file.includes('node_modules'))).toEqual([])
  })

  it('contains every file that the README links to', () => {
    const readme = readFileSync(join(root, 'README.md'), 'utf8')
    const targets = [...readme.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, target = '']) => target)
    expect(targets.length).toBeGreaterThan(10)
    expect(targets.filter((target) => !files.includes(target))).toEqual([])
  })

  it('passes publint in strict mode', async () => {
    const { messages } = await publint({ pkgDir: installed, pack: false, strict: true })
    expect(messages).toEqual([])
  })

  it('has types that resolve the way the code does, under module: commonjs too', async () => {
    // ARCHITECTURE.md gives the reasons for the exclusions.
    const attw = join(root, 'node_modules/@arethetypeswrong/cli/dist/index.js')
    const args = [attw, tarball, '--profile', 'strict', '--ignore-rules', 'cjs-resolves-to-esm', '--format', 'ascii']
    const { status, stdout, stderr } = await run(process.execPath, args)
    expect(status, stdout + stderr).toBe(0)
  })
})

describe('every entry', () => {
  const specifiers = JSON.stringify(entries)
  const byImport = `const names = {}
    for (const entry of ${specifiers}) names[entry] = Object.keys(await import(entry)).sort()
    console.log(JSON.stringify(names))`
  // Node adds this mark to modules with a default export, so that compiled code finds it.
  const isExport = `const isExport = (name) => name !== '__esModule'`
  const byRequire = `${isExport}
    const names = {}
    for (const entry of ${specifiers}) names[entry] = Object.keys(require(entry)).filter(isExport).sort()
    console.log(JSON.stringify(names))`

  it('loads with import and with require(), without a warning and with the same names', async () => {
    const imported = await evaluate('import.mjs', byImport)
    expect(await evaluate('require.cjs', byRequire)).toEqual(imported)
    expect(Object.keys(imported as object)).toEqual(entries)
    for (const names of Object.values(imported as Record<string, string[]>)) expect(names).not.toEqual([])
    expect(imported).toMatchObject({ 'fluxgate-js': expect.arrayContaining(['createLimiter', 'memoryStore']) })
  })

  it('is the same module with import and require()', async () => {
    const source = `${isExport}
    Promise.all(${specifiers}.map(async (entry) => {
      const imported = await import(entry)
      return Object.entries(require(entry)).every(([name, value]) => !isExport(name) || imported[name] === value)
    })).then((same) => console.log(JSON.stringify(same)))`
    expect(await evaluate('same.cjs', source)).toEqual(entries.map(() => true))
  })

  it('shares its classes with the other entries: a middleware throws a FluxGateError of the main entry', async () => {
    const source = `import { FluxGateError } from 'fluxgate-js'
      const found = []
      for (const name of ['express', 'fetch', 'hono', 'koa', 'node']) {
        const { rateLimit } = await import('fluxgate-js/' + name)
        try { rateLimit({ capacity: -1, window: '1m' }) } catch (error) { found.push(error instanceof FluxGateError && error.code) }
      }
      console.log(JSON.stringify(found))`
    expect(await evaluate('shared.mjs', source)).toEqual(Array(5).fill('FLUXGATE_RULES_INVALID'))
  })

  it.each(['express', 'fastify', 'fetch', 'hono', 'koa', 'nest', 'node'])(
    'fluxgate-js/%s is a few files, with nothing of what counting in its own process does not need',
    (name) => {
      const codeOf = (file: string): string => readFileSync(join(installed, 'dist/bundle', file), 'utf8')
      const loaded = new Set([`./${name}.js`])
      for (const file of loaded) {
        if (!file.startsWith('.')) continue
        for (const [, other = ''] of codeOf(file).matchAll(/^(?:import|export)\s(?:[^'"();=]*?\bfrom\s*)?"([^"]+)"/gm))
          loaded.add(other)
      }
      const own = [...loaded].filter((file) => !file.startsWith('node:'))
      expect(own).toContain('./common.js')
      expect(own.length).toBeLessThan(6)
      const bundled = readdirSync(join(installed, 'dist/bundle')).filter((file) => file.endsWith('.js'))
      for (const heavy of [/\bRedisBuckets\b/, /\bOwnClient\b/, /"yaml"/]) {
        expect(own.filter((file) => heavy.test(codeOf(file)))).toEqual([])
        // Other entries do contain it, so the pattern is right.
        expect(bundled.some((file) => heavy.test(codeOf(file)))).toBe(true)
      }
    },
  )

  it('provides a working limiter in three lines', async () => {
    const source = `const { createLimiter } = require('fluxgate-js')
      const limiter = createLimiter({ capacity: 2, window: '1h' })
      console.log(JSON.stringify([1, 2, 3].map(() => limiter.consumeSync('user:42').allowed)))`
    expect(await evaluate('use.cjs', source)).toEqual([true, true, false])
  })

  it('exports its version', async () => {
    const source = `console.log(JSON.stringify(require('fluxgate-js/package.json').version))`
    expect(await evaluate('version.cjs', source)).toBe(manifest.version)
  })
})

describe('the types', () => {
  const consumer = `
    import { createLimiter, type ContextCustomizer, type Decision, type RuleInput } from 'fluxgate-js'
    import type { BucketResetHandler, BucketStore, Handler, KeyResolver, ReloadStrategy, RuleSetProvider } from 'fluxgate-js'
    import { manualClock } from 'fluxgate-js/testing'
    ${entries.map((entry, index) => `export * as entry${index} from '${entry}'`).join('\n')}
    const limiter = createLimiter({ algorithm: 'TOKEN_BUCKET', capacity: 10, window: '1s', clock: manualClock(0) })
    export const now: Decision = limiter.consumeSync('user:42')
    export const later: Promise<Decision> = limiter.consume('user:42', 3)
    export const waitForPermit = (maxWaitMs?: number, signal?: AbortSignal) => limiter.wait('user:42', { maxWaitMs, signal })
    export const kept: RuleInput = { id: 'r', bands: [{ capacity: 1, window: '60s' }], version: 3, createdAt: '2026-01-31' }
    export const customize: ContextCustomizer = (context) => ({ ...context, userId: 'ann' })
    export type ExtensionPoints =
      [BucketResetHandler, BucketStore, Handler, KeyResolver, ReloadStrategy, RuleSetProvider]
    // @ts-expect-error a rejection is not a string
    export const wrong: string = limiter.consumeSync('user:42')
  `
  const commonJsConsumer = `
    import fluxgate = require('fluxgate-js')
    export const decision: fluxgate.Decision = fluxgate.createLimiter({ capacity: 1, window: '1s' }).consumeSync('a')
  `

  async function compile(options: object, sources: Record<string, string>): Promise<void> {
    for (const [file, source] of Object.entries(sources)) write(file, source)
    const strictest = { strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true }
    const common = {
      ...strictest,
      target: 'es2023',
      lib: ['es2023'],
      types: ['node'],
      noEmit: true,
      skipLibCheck: false,
    }
    write('tsconfig.json', JSON.stringify({ compilerOptions: { ...common, ...options }, files: Object.keys(sources) }))
    const { status, stdout } = await run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', '.'])
    expect(status, stdout).toBe(0)
  }

  it('compile in a strict project with ES modules and with CommonJS modules', async () => {
    await compile({ module: 'nodenext' }, { 'consumer.mts': consumer, 'consumer.cts': commonJsConsumer })
  })

  it('compile in a strict project with module resolution for bundlers', async () => {
    await compile({ module: 'esnext', moduleResolution: 'bundler' }, { 'consumer.ts': consumer })
  })

  it('compile without the types of Node in a project for edge runtimes', async () => {
    const worker = `
      import { createLimiter, memoryStore } from 'fluxgate-js'
      import { rateLimit } from 'fluxgate-js/fetch'
      import { HttpHandler } from 'fluxgate-js/handlers'
      import { rateLimit as honoLimit } from 'fluxgate-js/hono'
      export const limiter = createLimiter({ capacity: 1, window: '1m', store: memoryStore() })
      export const limits = [rateLimit({ capacity: 1, window: '1m' }), honoLimit({ capacity: 1, window: '1m' })]
      export const handler = new HttpHandler({ url: 'http://127.0.0.1:8090' })
    `
    const settings = {
      module: 'esnext',
      moduleResolution: 'bundler',
      lib: ['es2023', 'dom', 'dom.iterable'],
      types: [],
    }
    await compile(settings, { 'worker.ts': worker })
  })
})

describe('the command', () => {
  it.each(Object.entries<string>(manifest.bin))('%s is executable and runs with npx', async (name, file) => {
    expect(statSync(join(installed, file)).mode & 0o111).toBe(0o111)
    expect(readFileSync(join(installed, file), 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/)
    const { status, stdout, stderr } = await run('npx', ['--no-install', name, '--help'])
    expect(status, stderr).toBe(0)
    expect(stdout).toMatch(/^Usage: fluxgate /m)
  })
})
