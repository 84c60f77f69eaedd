/**
 * Checks the examples, links and lists of the documentation. In README.md and docs, `js` blocks are run against dist, and a
 * `text` block directly after one is its expected output; `ts` blocks are compiled. A `js` block with a file name must equal
 * that file of the repository. A `yaml` block with a file name is written to the directory in which the page's blocks run.
 */
import { execFile } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sharedRedis } from './servers/shared-redis.js'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const project = mkdtempSync(join(tmpdir(), 'fluxgate-docs-'))
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const manifest = JSON.parse(read('package.json'))

const pages = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .map((path) => path.replaceAll('\\', '/'))
  .filter((path) => path.endsWith('.md') && !/^(node_modules|dist|coverage|\..*)\/|\/node_modules\//.test(path))
  .sort()

interface Block {
  readonly page: string
  readonly name: string
  readonly language: string
  readonly file: string
  readonly text: string
  /** The expected output, if the page contains it. */
  readonly output: string | undefined
}

function blocksOf(page: string): Block[] {
  const fence = /^```(\w*)(?: (\S+))?\n([\s\S]*?)^```$(?:\n+```text\n([\s\S]*?)^```$)?/gm
  return [...read(page).matchAll(fence)].map(([, language = '', file = '', text = '', output], index) => ({
    page,
    name: `${page.replaceAll(/\W/g, '-')}-${index}`,
    language,
    file,
    text,
    output,
  }))
}

const blocks = pages.filter((page) => page === 'README.md' || page.startsWith('docs/')).flatMap(blocksOf)
const programs = blocks.filter(({ language, file }) => language === 'js' && file === '')
const snippets = blocks.filter(({ language, file }) => language === 'ts' && file === '')
const shown = blocks.filter(({ language, file }) => language === 'js' && file !== '')

beforeAll(() => {
  mkdirSync(join(project, 'node_modules'))
  symlinkSync(root, join(project, 'node_modules/fluxgate-js'))
  const frameworks = ['express', 'fastify', 'koa', 'hono', '@hono', '@nestjs', 'reflect-metadata']
  for (const name of ['@types', 'vitest', 'ioredis', 'mongodb', 'prom-client', '@opentelemetry', ...frameworks])
    symlinkSync(join(root, 'node_modules', name), join(project, 'node_modules', name))
  for (const page of new Set(programs.map((program) => program.page))) mkdirSync(directoryOf(page), { recursive: true })
  for (const { page, language, file, text } of blocks)
    if (language === 'yaml' && existsSync(directoryOf(page)) && file.includes('.'))
      writeFileSync(join(directoryOf(page), file), text)
})
afterAll(() => rmSync(project, { recursive: true, force: true }))

/** Each page has its own directory, because pages may use the same file names. */
const directoryOf = (page: string): string => join(project, page.replaceAll(/\W/g, '-'))

function run(args: readonly string[], cwd: string): Promise<{ status: number; stdout: string; stderr: string }> {
  const env = {
    ...process.env,
    NODE_OPTIONS: '',
    NO_COLOR: '1',
    FORCE_COLOR: undefined,
    NODE_TEST_CONTEXT: undefined,
    REDIS_URI: sharedRedis().uri,
  }
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd, env, timeout: 60_000 }, (error, stdout, stderr) =>
      resolve({ status: error ? Number(error.code ?? 1) : 0, stdout, stderr }),
    )
  })
}

describe('examples in the pages', () => {
  it.each(programs)('$name runs and prints the output on the page', async ({ page, name, text, output }) => {
    const file = join(directoryOf(page), `${name}.mjs`)
    writeFileSync(file, text)
    const { status, stdout, stderr } = await run([file], directoryOf(page))
    expect({ status, stderr }, stdout).toEqual({ status: 0, stderr: '' })
    if (output !== undefined) expect(stdout).toBe(output)
  })

  it('exist', () => {
    expect(programs.length).toBeGreaterThan(8)
    expect(shown.length).toBeGreaterThan(0)
  })

  it('in TypeScript compile', async () => {
    const names = snippets.map(({ name }) => `${name}.mts`)
    for (const { name, text } of snippets) writeFileSync(join(project, `${name}.mts`), text)
    const compilerOptions = {
      strict: true,
      module: 'nodenext',
      target: 'es2023',
      types: ['node'],
      noEmit: true,
      skipLibCheck: true,
    }
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: names }))
    const { status, stdout } = await run([join(root, 'node_modules/typescript/bin/tsc'), '-p', '.'], project)
    expect(status, stdout).toBe(0)
  })

  it.each(shown)('$file is the same as in the repository', ({ file, text }) => {
    expect(text).toBe(read(file))
  })
})

describe('links', () => {
  /** The anchor that GitHub generates for a heading. */
  const anchorOf = (title: string): string =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replaceAll(' ', '-')
  const proseOf = (page: string): string => read(page).replaceAll(/^```[\s\S]*?^```$/gm, '')
  const anchorsIn = (page: string): string[] =>
    [...proseOf(page).matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => anchorOf(title))

  it.each(pages)('of %s have existing targets', (page) => {
    const targets = [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target)
    const broken = targets
      .filter((target) => !/^[a-z]+:/.test(target))
      .filter((target) => {
        const [path = '', anchor] = target.split('#')
        const file = path === '' ? page : join(dirname(page), path)
        if (!existsSync(join(root, file))) return true
        return anchor !== undefined && !anchorsIn(file).includes(anchor)
      })
    expect(broken).toEqual([])
  })

  it('reach every page of docs from README.md, directly or through other pages', () => {
    const reached = new Set(['README.md'])
    for (const page of reached)
      for (const [, target = ''] of proseOf(page).matchAll(/\]\(([^)#\s]+)/g)) {
        const linked = join(dirname(page), target)
        if (pages.includes(linked)) reached.add(linked)
      }
    expect(pages.filter((page) => page.startsWith('docs/') && !reached.has(page))).toEqual([])
  })
})

describe('every page', () => {
  it.each(pages)('%s names only npm scripts that exist', (page) => {
    const names = [...read(page).matchAll(/\bnpm (?:run ([\w:-]+)|(start|test)\b)/g)].map(
      ([, script, short]) => script ?? short,
    )
    expect(names.filter((name = '') => !(name in manifest.scripts))).toEqual([])
  })

  it.each(pages)('%s contains no local path', (page) => {
    const places = /(?:^|[\s"'`(=])(?:\/(?:home|root|Users|work|workspace|tmp|mnt|opt|var)\/|[A-Z]:\\)[^\s]*/gm
    expect(read(page).match(places) ?? []).toEqual([])
  })

  it('CONTRIBUTING.md describes every npm script', () => {
    const inner = /^(pre|post)|^build$/
    for (const name of Object.keys(manifest.scripts).filter((script) => !inner.test(script)))
      expect(read('CONTRIBUTING.md')).toMatch(new RegExp(`\`npm (run )?${name}\``))
  })
})

describe('the reference of errors', () => {
  const codes = [...read('src/core/errors.ts').matchAll(/^ {2}(FLUXGATE_\w+):/gm)].map(([, code = '']) => code)

  it('lists exactly the error codes', () => {
    const rows = [...read('docs/reference/errors.md').matchAll(/^\| `(FLUXGATE_\w+)` \| .+ \| .+ \|$/gm)]
    expect(codes.length).toBeGreaterThan(5)
    expect(rows.map(([, code]) => code)).toEqual(codes)
  })

  it.each(codes)('%s is thrown somewhere', (code) => {
    const users = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts') && file !== join('core', 'errors.ts'))
      .filter((file) => read(join('src', file)).includes(`'${code}'`))
    expect(users).not.toEqual([])
  })
})

describe('the library reference', () => {
  const index = read('docs/reference/library.md')
  const pageOf = (target: string): string => read(join('docs/reference', target))
  const sectionOf = (page: string, title: string): string =>
    page.split(/^## /m).find((text) => text.startsWith(`${title}\n`)) ?? ''
  /** The rows of the index: an entry, and the page, or the section of a page with several entries, that documents it. */
  const rows = [...index.matchAll(/^\| `(fluxgate\S*)` \|.*\]\(([^)#]+)(#[^)]+)?\) \|$/gm)].map(
    ([, entry = '', target = '', anchor]) => ({
      entry,
      target,
      text: anchor === undefined ? pageOf(target) : sectionOf(pageOf(target), entry),
    }),
  )
  const reference = [...new Set(rows.map(({ target }) => target))].map(pageOf).join('\n')
  const textsOf = (entry: string): string[] => rows.filter((row) => row.entry === entry).map(({ text }) => text)
  const firstColumn = (table: string): string[] =>
    [...table.matchAll(/^\| ([^|]+) \|/gm)].flatMap(([, cell = '']) =>
      [...cell.matchAll(/`([\w.]+)`/g)].map(([, name = '']) => name),
    )
  const entries = Object.entries<{ default?: string; types?: string }>(manifest.exports).flatMap(
    ([subpath, { default: file, types: declared }]) =>
      file === undefined || declared === undefined
        ? []
        : [{ entry: subpath.replace(/^\./, 'fluxgate-js'), file, declared }],
  )

  it('lists exactly the entries', () => {
    expect([...new Set(rows.map(({ entry }) => entry))]).toEqual(entries.map(({ entry }) => entry))
  })

  it('links every page of docs/reference/library', () => {
    const linked = rows.map(({ target }) => `docs/reference/${target}`)
    expect(pages.filter((page) => page.startsWith('docs/reference/library/') && !linked.includes(page))).toEqual([])
  })

  it.each(entries)('has headings for exactly the values that $entry exports', async ({ entry, file }) => {
    const titles = textsOf(entry).flatMap((text) =>
      [...text.matchAll(/^##+ `(\w+)`$/gm)].map(([, title = '']) => title),
    )
    expect(titles.sort()).toEqual(Object.keys(await import(join(root, file))).sort())
  })

  it.each(entries)('lists exactly the types that $entry exports', ({ entry, declared }) => {
    const declarations = read(declared)
    const exported = [...declarations.matchAll(/^export (type )?\{([^}]*)\}/gm)].flatMap(([, isType, names = '']) =>
      names
        .split(',')
        .map((name) => name.trim())
        .filter((name) => name !== '' && (isType || name.startsWith('type ')))
        .map((name) => name.replace(/^type /, '')),
    )
    const listed = textsOf(entry).flatMap((text) => {
      const [, table = ''] = text.split(/^##+ Types(?: of \S+)?$/m)
      const [types = ''] = table.split(/\n\n(?!\|)/).filter((part) => part.includes('|'))
      return firstColumn(types)
    })
    expect(listed.sort()).toEqual(exported.sort())
  })

  it('explains exactly the fields and reasons of a decision', () => {
    const source = read('src/core/decision.ts')
    const fieldsOf = (name: string): string[] =>
      [...(source.split(`interface ${name} {`)[1]?.split('\n}')[0] ?? '').matchAll(/^ {2}readonly (\w+)/gm)].map(
        ([, field = '']) => field,
      )
    const [decision = '', reasons = '', band = ''] = pageOf('library/decisions.md')
      .split(/\n\n/)
      .filter((part) => part.startsWith('| '))
    expect(firstColumn(decision).sort()).toEqual(fieldsOf('Decision').sort())
    expect(firstColumn(reasons.slice(reasons.indexOf('|---'))).sort()).toEqual(
      [...source.matchAll(/^ {2}\| '(\w+)'/gm)].map(([, reason]) => reason).sort(),
    )
    expect(firstColumn(band).sort()).toEqual(fieldsOf('BandDecision').sort())
  })

  it.each([
    ['src/gate/options.ts', 'FluxGateOptions'],
    ['src/gate/limiter/limiter.ts', 'LimiterOptions'],
    ['src/gate/limiter/limiter.ts', 'WaitOptions'],
    ['src/gate/health/gate-health.ts', 'GateHealth'],
    ['src/gate/events.ts', 'GateEvents'],
    ['src/core/handler.ts', 'CheckOptions'],
    ['src/core/request-context.ts', 'RequestContext'],
    ['src/core/bucket-store.ts', 'Charge'],
    ['src/http/guard-options.ts', 'GuardOptions'],
    ['src/http/client-ip/client-ip.ts', 'ClientIpOptions'],
    ['src/http/path-filter.ts', 'PathFilterOptions'],
    ['src/middleware/limits/create-guard.ts', 'SingleLimit'],
    ['src/stores/memory/memory-store.ts', 'MemoryStoreOptions'],
    ['src/stores/resilient/resilient.ts', 'ResilientOptions'],
    ['src/core/scheduling/circuit-breaker.ts', 'BreakerOptions'],
    ['src/handlers/http/http-handler.ts', 'HttpHandlerOptions'],
    ['src/rules/mongo/mongo-rule-store.ts', 'MongoRuleStoreOptions'],
    ['src/redis/lock/options.ts', 'HoldOptions'],
    ['src/redis/lock/options.ts', 'AcquireOptions'],
    ['src/redis/lock/options.ts', 'LockOptions'],
    ['src/redis/lock/create-locks.ts', 'QuorumOptions'],
    ['src/redis/lock/create-locks.ts', 'SemaphoreOptions'],
    ['src/redis/lock/redis-backend.ts', 'LockState'],
    ['src/testing/compare-with-model.ts', 'Comparison'],
    ['src/testing/bucket-store-contract.ts', 'ContractOptions'],
  ])('of %s mentions every member of %s', (file, name) => {
    const [, body = ''] = read(file).split(new RegExp(`(?:interface|type) ${name}\\b[^{]*\\{`))
    const members = [...(body.split('\n}')[0] ?? '').matchAll(/(?:^ {2}|readonly )(\w+)\??: /gm)].map(
      ([, member = '']) => member,
    )
    expect(members).not.toEqual([])
    expect(members.filter((member) => !new RegExp(`[\`.{ ]${member}[\`.,(} ]`).test(reference))).toEqual([])
  })
})
