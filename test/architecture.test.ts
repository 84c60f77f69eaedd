/**
 * Checks which component may import which, and the conventions that a reviewer should not have to check. Files are read as
 * text. The formatter guarantees that imports are at the start of a line.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

/** Each component, its purpose and its allowed imports. ARCHITECTURE.md contains the same text. */
const layers = `
core/         types, contracts and the decision itself: matching, keys, waiting            nothing
validation/   parsing and checking of options, settings and documents                      core
algorithms/   one pure step per algorithm, in TypeScript and in Lua                        core
redis/        connections and scripts (client); locks, bulk loading, search index          core validation
stores/       bucket stores (memory, redis) and their decorators (leased, resilient)       core validation algorithms redis
rules/        rule documents, rule stores (file, redis, mongo), reload                     core validation redis
handlers/     decisions in this process, or from a FluxGate server over HTTP               core validation
http/         framework-free edge: guard, client IP, headers, problem documents            core validation rules
envoy/        Envoy's rate limit service: gRPC, protobuf, import of its rules              core validation rules http
telemetry/    metrics, statistics, OpenTelemetry, reports of candidates, logs              core redis
gateway/      reverse proxy: routes, proxy, upstream                                       core validation rules http
config/       fluxgate.yaml and environment variables to typed settings                    core validation redis stores rules http gateway
gate/         createFluxGate and createLimiter: rules, store, waiting and events           core validation redis stores rules handlers telemetry config
middleware/   one entry per framework, limits of routes and requests                       core validation stores rules handlers http gate
compat/       drop-in replacements for other limiters                                      core redis middleware
simulate/     simulated traffic and its decisions over time                                core algorithms
server/       REST API, events, health, console                                            core validation rules http telemetry
program/      composition of a running process: server, gateway, workers, doctor, demo     core validation redis rules http envoy telemetry gateway config gate server
*.ts          entries: index, edge, redis, mongo, lock, bulk, search-index, prometheus     everything above
cli/          the fluxgate command                                                         core validation redis rules envoy gateway config gate simulate server program
testing/      published contract suites, manual clock, reference models                    core algorithms stores/memory
`.trim()

/** Packages that every component may import. */
const sharedPackages = ['commander', 'yaml']
const testPackages = ['vitest', 'fast-check', 'ajv', 'ioredis', 'redis']

/** Packages that only one folder may import, so that a user installs only the clients and frameworks in use. */
const packageOwners: Readonly<Record<string, string>> = {
  undici: 'gateway/upstream/',
  ioredis: 'redis/client/',
  mongodb: 'rules/mongo/',
  '@nestjs/common': 'middleware/',
  '@nestjs/core': 'middleware/',
  '@nestjs/websockets': 'middleware/',
}

interface Layer {
  readonly name: string
  /** Folders, or files without their extension. */
  readonly mayImport: readonly string[]
}

function parseLayers(table: string): Layer[] {
  const parsed: Layer[] = []
  for (const line of table.split('\n')) {
    const [folder = '', , allowed = ''] = line.split(/\s{2,}/)
    const above = parsed.map((layer) => layer.name)
    const mayImport = allowed === 'nothing' ? [] : allowed === 'everything above' ? above : allowed.split(' ')
    parsed.push({ name: folder.replace(/\/$|\.ts$/, ''), mayImport })
  }
  return parsed
}

const findLayer = (name: string): Layer | undefined => parseLayers(layers).find((layer) => layer.name === name)

/** Components that any test may import: the published test tools and their dependencies. */
const testBed = ['testing', ...(findLayer('testing')?.mayImport ?? [])]

/** The modules that a source imports: static, dynamic and type imports, and re-exports. */
function importsOf(source: string): string[] {
  const patterns = [
    /^(?:import|export)\s[^'"();=]*?\bfrom\s*['"]([^'"]+)['"]/gm,
    /^import\s*['"]([^'"]+)['"]/gm,
    /\bimport\(\s*['"]([^'"]+)['"]/g,
  ]
  return patterns.flatMap((pattern) => [...source.matchAll(pattern)].map((match) => match[1] ?? ''))
}

/** The modules that a source loads, at once or by dynamic imports. Types are not loaded. */
const valueImportsOf = (source: string): string[] => importsOf(source.replaceAll(/^(import|export) type\s.*$/gm, ''))

/** The modules that are loaded together with a source: neither type imports nor dynamic imports. */
const loadedBy = (source: string): string[] => valueImportsOf(source.replaceAll(/\bimport\(/g, ''))

/** `core/rule.ts` → `core/rule`, relative to src. */
const withoutExtension = (file: string): string => file.replace(/\.[jt]s$/, '')
/** `*` matches the entries, which are directly in src. */
const layerOf = (file: string): string => (file.includes('/') ? (file.split('/')[0] ?? '') : '*')
const isTest = (file: string): boolean => file.endsWith('.test.ts')

/** Describes why `file` must not import `specifier`; undefined if it may. */
function importViolation(file: string, specifier: string): string | undefined {
  const layer = findLayer(layerOf(file))
  if (!layer) return `${file} is in no layer of the table`
  if (specifier.startsWith('node:')) return undefined
  if (!specifier.startsWith('.')) {
    const name = specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
    const owner = packageOwners[name]
    const known =
      sharedPackages.includes(name) ||
      (owner !== undefined && file.startsWith(owner)) ||
      (isTest(file) && testPackages.includes(name))
    return known ? undefined : `${file} imports ${name}`
  }
  const target = withoutExtension(posix.join(posix.dirname(file), specifier))
  const allowed = [layer.name, ...layer.mayImport, ...(isTest(file) ? testBed : [])]
  const known = allowed.some((folder) => target.startsWith(`${folder}/`))
  return known ? undefined : `${file} imports ${target}`
}

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const paths = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).map((path) =>
  path.replaceAll('\\', '/'),
)
const sources = new Map(
  paths.filter((path) => path.endsWith('.ts')).map((path) => [path, readFileSync(join(root, 'src', path), 'utf8')]),
)
const filesWhere = (test: (source: string, file: string) => boolean): string[] =>
  [...sources].filter(([file, source]) => test(source, file)).map(([file]) => file)

/** The names of the modules of each folder, without tests and without what is generated. */
const modulesByFolder = new Map<string, Set<string>>()
for (const file of sources.keys()) {
  if (isTest(file) || file.endsWith('.generated.ts')) continue
  const folder = posix.dirname(file)
  modulesByFolder.set(folder, (modulesByFolder.get(folder) ?? new Set()).add(posix.basename(file, '.ts')))
}

describe('the component table', () => {
  it('is acyclic: every component imports only components above it in the list', () => {
    const seen: string[] = []
    for (const { name, mayImport } of parseLayers(layers)) {
      for (const folder of mayImport) expect(seen, `${name} may import ${folder}`).toContain(folder.split('/')[0])
      seen.push(name)
    }
  })

  it('is the same in ARCHITECTURE.md', () => {
    expect(readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8')).toContain(`\n${layers}\n`)
  })

  it('allows the console to import only types and what runs in a browser', () => {
    const allowed = ['core/', 'simulate/', 'handlers/standalone', 'stores/memory/', 'rules/schema/']
    const folder = join(root, 'console', 'src')
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => /\.tsx?$/.test(path))
    expect(files.length).toBeGreaterThan(30)
    const imported = files.flatMap((file) =>
      valueImportsOf(readFileSync(join(folder, file), 'utf8')).flatMap((specifier) => {
        const [, target] = /^(?:\.\.\/)+src\/(.+)$/.exec(specifier) ?? []
        return target === undefined || allowed.some((start) => target.startsWith(start)) ? [] : `${file}: ${target}`
      }),
    )
    expect(imported).toEqual([])
  })

  it('allows every import in src', () => {
    expect(sources.size).toBeGreaterThan(0)
    const found = [...sources].flatMap(([file, source]) => importsOf(source).map((name) => importViolation(file, name)))
    expect(found.filter((problem) => problem !== undefined)).toEqual([])
  })

  it('contains the component of every file in src', () => {
    const names = parseLayers(layers).map(({ name }) => name)
    expect(filesWhere((_, file) => !names.includes(layerOf(file)))).toEqual([])
  })
})

/**
 * Loaded modules cost memory and start-up time before the first request. They also slow down requests: with a megabyte less on
 * the heap, Node collects garbage later, after it has optimized `nextTick`. Otherwise each request takes 3 µs longer.
 */
describe('modules loaded by a middleware', () => {
  const alsoLoaded = (file: string): string[] =>
    loadedBy(sources.get(`${file}.ts`) ?? '').map((name) =>
      name.startsWith('.') ? withoutExtension(posix.join(posix.dirname(file), name)) : name,
    )

  function allLoadedBy(file: string): string[] {
    const all = new Set([file])
    for (const one of all) for (const other of alsoLoaded(one)) all.add(other)
    return [...all]
  }

  it.each(['express', 'fastify', 'fetch', 'hono', 'koa', 'nest', 'node'])(
    'fluxgate-js/%s loads no modules that an in-memory store does not need',
    (name) => {
      const loaded = allLoadedBy(`middleware/${name}`)
      expect(loaded).toContain('stores/memory/memory-store')
      const heavy =
        /^(yaml|commander|ioredis|mongodb|undici)$|^(gateway|server|telemetry|simulate|redis\/lock)\/|^stores\/redis\/redis/
      expect(loaded.filter((one) => heavy.test(one))).toEqual([])
    },
  )

  it('do not import node:process, because that opens the standard streams', () => {
    expect(filesWhere((source) => /from 'node:process'/.test(source))).toEqual([])
  })
})

describe('the check itself', () => {
  it('finds every form of import', () => {
    const source = [
      "import { a } from './a.js'",
      "import type { B } from './b.js'",
      'import {\n  type C,\n  d,\n} from "./c.js"',
      "export * from './d.js'",
      "export { e } from './e.js'",
      "import './f.js'",
      "const g = await import('./g.js')",
      "type H = import('./h.js').H",
      " * import { notThis } from 'a comment'",
      "export const text = 'not from'",
    ].join('\n')
    expect(importsOf(source).sort()).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map((name) => `./${name}.js`))
  })

  it('distinguishes loaded modules from type and dynamic imports', () => {
    const source = [
      "import { a, type B } from './a.js'",
      "import type { C } from './c.js'",
      "export type { D } from './d.js'",
      "export { e } from './e.js'",
      "const g = await import('./g.js')",
    ].join('\n')
    expect(loadedBy(source)).toEqual(['./a.js', './e.js'])
  })

  it.each([
    ['core/rule.ts', '../stores/memory/memory-store.js'],
    ['algorithms/token-bucket.ts', '../stores/memory/memory-store.js'],
    ['stores/memory/memory-store.ts', '../../testing/manual-clock.js'],
    ['testing/index.ts', '../stores/redis/redis-store.js'],
    ['middleware/express.ts', 'express'],
    ['stores/redis/redis-store.ts', 'ioredis'],
    ['rules/store/page.ts', 'mongodb'],
    ['algorithms/token-bucket.test.ts', '../rules/schema/parse-rules.js'],
    ['core/rule.ts', 'vitest'],
    ['core/rule.ts', '../../package.json'],
    ['gate/gate.ts', '../redis.js'],
    ['elsewhere/x.ts', 'node:fs'],
  ])('rejects %s importing %s', (file, specifier) => {
    expect(importViolation(file, specifier)).toBeTypeOf('string')
  })

  it.each([
    ['core/rule.ts', './decision.js'],
    ['stores/memory/memory-store.ts', '../../core/clock.js'],
    ['stores/memory/memory-store.test.ts', '../../testing/index.js'],
    ['algorithms/token-bucket.test.ts', '../stores/memory/memory-store.js'],
    ['testing/index.ts', '../stores/memory/memory-store.js'],
    ['redis/client/open/open-redis.ts', 'ioredis'],
    ['rules/document/document.ts', 'yaml'],
    ['core/rule.test.ts', 'vitest'],
    ['index.ts', './stores/memory/memory-store.js'],
  ])('accepts %s importing %s', (file, specifier) => {
    expect(importViolation(file, specifier)).toBeUndefined()
  })
})

describe('conventions', () => {
  it('has no default exports, so every export has one name, except where a replaced package has one', () => {
    const isDefault = /^export default\b|^export\s*\{[^}]*\bas default\b/m
    expect(filesWhere((source, file) => isDefault.test(source) && !file.startsWith('compat/'))).toEqual([])
  })

  it('has no catch-all folders such as utils', () => {
    expect(paths.filter((path) => /(^|\/)(utils?|types|helpers?|common|misc)$/.test(path))).toEqual([])
  })

  it('has at most fifteen modules per folder, without tests', () => {
    expect([...modulesByFolder].filter(([, names]) => names.size > 15).map(([folder]) => folder)).toEqual([])
  })

  it('has a folder instead of three files with the same first word in their names', () => {
    const crowded = [...modulesByFolder].flatMap(([folder, names]) => {
      const words = [...names].map((name) => name.split('-')[0])
      const shared = words.filter((word) => words.filter((one) => one === word).length > 2)
      return [...new Set(shared)].map((word) => `${folder}/${word}-*`)
    })
    expect(crowded).toEqual([])
  })

  it('has no file longer than 400 lines', () => {
    const tooLong = (source: string, file: string): boolean =>
      source.trimEnd().split('\n').length > 400 && !file.endsWith('.generated.ts')
    expect(filesWhere(tooLong)).toEqual([])
  })
})
