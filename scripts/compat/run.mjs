// @ts-check
/**
 * Runs the test suite of a peer against its drop-in replacement: `node scripts/compat/run.mjs <peer> <checkout>`. The checkout,
 * with its test dependencies installed, stays unchanged: a copy is tested, in which the peer's modules load the replacement.
 * Compares the failures with the list of deliberate differences in `<peer>.json`, and fails if others are found.
 */
import { spawn, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
const [peer = '', checkout = ''] = process.argv.slice(2)

/** @typedef {{ title: string, passed: boolean, message: string }} Result */

/** @type {Record<string, (copy: string) => Promise<Result[]>>} */
const suites = {
  'express-rate-limit': runExpressTests,
  'fastify-rate-limit': runNodeTests,
  'rate-limiter-flexible': runMocha,
  'nestjs-throttler': runThrottlerTests,
}

/** Jest cannot load ES modules with require(), so the replacement is one CommonJS file. */
async function bundleTo(/** @type {string} */ file) {
  const build = await rolldown({
    input: join(root, 'dist', 'compat', `${peer}.js`),
    platform: 'node',
    external: (id) => !id.startsWith('.') && !id.startsWith('/'),
  })
  await build.write({ file, format: 'cjs', exports: 'named', codeSplitting: false })
  await build.close()
}

async function runExpressTests(/** @type {string} */ copy) {
  const replacement = join(copy, 'replacement.cjs')
  await bundleTo(replacement)
  const compilerOptions = { target: 'es2022', module: 'commonjs', esModuleInterop: true, isolatedModules: true }
  const config = {
    rootDir: copy,
    transform: { '^.+\\.ts$': ['ts-jest', { diagnostics: false, tsconfig: compilerOptions }] },
    testTimeout: 30_000,
    testMatch: ['middleware', 'headers', 'options', 'ip-key-generator', 'memory-store'].map(
      (name) => `**/test/library/${name}-test.ts`,
    ),
    moduleNameMapper: {
      '^\\.\\./\\.\\./source/(index|memory-store)\\.js$': replacement,
      '^(\\.{1,2}/.*)\\.js$': '$1',
    },
  }
  // Calls functions of the original directly.
  const isOfOriginal = (/** @type {Result} */ { title }) => title.includes('if request.headersSent is true')
  return runJest(copy, config).filter((result) => !isOfOriginal(result))
}

/** Runs Jest with a configuration. @returns {Result[]} */
function runJest(/** @type {string} */ copy, /** @type {object} */ config) {
  writeFileSync(join(copy, 'compat.config.json'), JSON.stringify(config))
  const output = join(copy, 'results.json')
  const options = ['-c', 'compat.config.json', '--runInBand', '--forceExit', '--json', '--outputFile', output]
  const jest = join(resolveTool(copy, 'jest'), 'bin/jest.js')
  spawnSync(process.execPath, [jest, ...options], { cwd: copy, stdio: ['ignore', 'ignore', 'ignore'] })
  const { testResults } = JSON.parse(readFileSync(output, 'utf8'))
  return testResults.flatMap((/** @type {any} */ file) =>
    file.assertionResults.map((/** @type {any} */ test) => ({
      title: test.fullName,
      passed: test.status === 'passed',
      message: test.failureMessages.join('\n'),
    })),
  )
}

/** Replaces the storage of @nestjs/throttler, in memory and on Redis, under the tests of the storage, the guard and the module. */
async function runThrottlerTests(/** @type {string} */ copy) {
  const replacement = join(copy, 'replacement.cjs')
  await bundleTo(replacement)
  const compilerOptions = {
    ...{ target: 'es2022', module: 'commonjs', isolatedModules: true },
    ...{ experimentalDecorators: true, emitDecoratorMetadata: true },
  }
  const config = {
    rootDir: copy,
    transform: { '^.+\\.ts$': ['ts-jest', { diagnostics: false, tsconfig: compilerOptions }] },
    moduleFileExtensions: ['js', 'json', 'ts'],
    testRegex: '(\\.spec|e2e-spec)\\.ts$',
  }
  const port = await freePort()
  const redis = spawn('redis-server', ['--port', String(port), '--save', '', '--appendonly', 'no'], { stdio: 'ignore' })
  /** @type {Result[]} */
  const results = []
  try {
    for (const [name, options] of [
      ['memory', '{}'],
      // The checkout has no Redis client.
      ['Redis', `{ redis: new Redis(${port}), prefix: \`\${process.hrtime.bigint()}:\` }`],
    ]) {
      const storage = `const { FluxGateThrottlerStorage } = require(${JSON.stringify(replacement)})
const { Redis } = require(${JSON.stringify(join(root, 'node_modules', 'ioredis'))})
export class ThrottlerStorageService extends FluxGateThrottlerStorage {
  constructor() {
    super(${options})
  }
}
`
      writeFileSync(join(copy, 'src', 'throttler.service.ts'), storage)
      for (const result of runJest(copy, config)) results.push({ ...result, title: `${name}: ${result.title}` })
    }
  } finally {
    redis.kill()
  }
  return results
}

const replaced = {
  RateLimiterMemory: 'RateLimiterMemory',
  RateLimiterRedis: 'RateLimiterRedis',
  RateLimiterRes: 'RateLimiterRes',
  RateLimiterUnion: 'RateLimiterUnion',
  BurstyRateLimiter: 'BurstyRateLimiter',
  RateLimiterQueue: 'RateLimiterQueue',
  RLWrapperBlackAndWhite: 'RLWrapperBlackAndWhite',
  'component/RateLimiterQueueError': 'RateLimiterQueueError',
}

async function runMocha(/** @type {string} */ copy) {
  const replacement = join(copy, 'replacement.cjs')
  await bundleTo(replacement)
  for (const [file, name] of Object.entries(replaced))
    writeFileSync(join(copy, 'lib', `${file}.js`), `module.exports = require(${JSON.stringify(replacement)}).${name}\n`)
  const port = await freePort()
  const names = ['RateLimiterMemory', 'RateLimiterRedis.ioredis', 'RateLimiterRedis.redis', 'RateLimiterQueue']
  const files = [...names, 'RateLimiterUnion', 'BurstyRateLimiter', 'RLWrapperBlackAndWhite', 'RateLimiterRes'].map(
    (name) => join('test', `${name}.test.js`),
  )
  for (const file of [...files, join('test', 'RedisOptions.js')]) {
    const text = readFileSync(join(copy, file), 'utf8')
    const moved = text.replaceAll('6379', String(port)).replaceAll('new Redis()', `new Redis(${port})`)
    writeFileSync(join(copy, file), moved)
  }
  const redis = spawn('redis-server', ['--port', String(port), '--save', '', '--appendonly', 'no'], { stdio: 'ignore' })
  try {
    const output = join(copy, 'results.json')
    const mocha = [
      join(resolveTool(copy, 'mocha'), 'bin/mocha.js'),
      '--exit',
      '--reporter',
      'json',
      '--reporter-option',
      `output=${output}`,
    ]
    spawnSync(process.execPath, [...mocha, ...files], { cwd: copy, stdio: ['ignore', 'ignore', 'ignore'] })
    const { tests } = JSON.parse(readFileSync(output, 'utf8'))
    return tests.map((/** @type {any} */ { file, fullTitle, err }) => ({
      title: `${file.replace(/.*[/\\]/, '')}: ${fullTitle}`,
      passed: Object.keys(err).length === 0,
      message: err.message ?? '',
    }))
  } finally {
    redis.kill()
  }
}

/** Writes one line of JSON per finished test. */
const reporter = `export default async function* (events) {
  for await (const { type, data } of events)
    if (type === 'test:pass' || type === 'test:fail') {
      if (data.details?.type === 'suite' || data.skip || /\\.test\\.js$/.test(data.name)) continue
      const message = data.details?.error?.cause?.message ?? data.details?.error?.message ?? ''
      yield JSON.stringify({ title: data.name, passed: type === 'test:pass', message: String(message) }) + '\\n'
    }
}`

async function runNodeTests(/** @type {string} */ copy) {
  const replacement = join(copy, 'replacement.cjs')
  await bundleTo(replacement)
  const shim = `const { fastifyRateLimit, normalizeIP } = require(${JSON.stringify(replacement)})
module.exports = Object.assign(fastifyRateLimit, { default: fastifyRateLimit, fastifyRateLimit, normalizeIP })
`
  writeFileSync(join(copy, 'index.js'), shim)
  writeFileSync(join(copy, 'reporter.mjs'), reporter)
  const port = await freePort()
  const files = readdirSync(join(copy, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.js'))
    .map((name) => join('test', name))
  for (const file of files) {
    const text = readFileSync(join(copy, file), 'utf8')
    const moved = text.replaceAll(/new Redis\(\{/g, `new Redis({ port: ${port},`).replaceAll('6379', String(port))
    writeFileSync(join(copy, file), moved)
  }
  const redis = spawn('redis-server', ['--port', String(port), '--save', '', '--appendonly', 'no'], { stdio: 'ignore' })
  try {
    const options = [
      '--test',
      '--test-concurrency=1',
      '--test-reporter=./reporter.mjs',
      '--test-reporter-destination=stdout',
    ]
    const { stdout } = spawnSync(process.execPath, [...options, ...files], {
      cwd: copy,
      encoding: 'utf8',
      maxBuffer: 2 ** 26,
    })
    return stdout
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line))
  } finally {
    redis.kill()
  }
}

/** The folder of a test tool, in the checkout or above it. */
function resolveTool(/** @type {string} */ copy, /** @type {string} */ name) {
  for (const folder of [copy, resolve(checkout), dirname(resolve(checkout))]) {
    const found = join(folder, 'node_modules', name)
    if (existsSync(found)) return found
  }
  console.error(`${name} is not installed in ${checkout}. Install the test dependencies of the checkout first.`)
  process.exit(2)
}

/** @returns {Promise<number>} */
const freePort = () =>
  new Promise((done) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => done(typeof address === 'object' && address ? address.port : 0))
    })
  })

const suite = suites[peer]
if (suite === undefined || !existsSync(join(checkout, 'package.json'))) {
  console.error(`Usage: node scripts/compat/run.mjs <${Object.keys(suites).join(' | ')}> <checkout>`)
  process.exit(2)
}
const copy = mkdtempSync(join(tmpdir(), 'fluxgate-compat-'))
try {
  cpSync(checkout, copy, { recursive: true, filter: (path) => !/[/\\](node_modules|\.git)$/.test(path) })
  const own = join(resolve(checkout), 'node_modules')
  symlinkSync(existsSync(own) ? own : join(dirname(resolve(checkout)), 'node_modules'), join(copy, 'node_modules'))
  const results = await suite(copy)
  const file = new URL(`${peer}.json`, import.meta.url)
  /** @type {Record<string, string>} */
  const differences = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {}
  const failed = results.filter(({ passed }) => !passed)
  const unexpected = failed.filter(({ title }) => differences[title] === undefined)
  for (const { title, message } of unexpected)
    console.log(`FAILED ${title}\n  ${message.split('\n').slice(0, 4).join('\n  ')}`)
  const passed = results.length - failed.length
  console.log(
    `${peer}: ${passed} of ${results.length} tests pass (${((100 * passed) / results.length).toFixed(1)} %), ${failed.length - unexpected.length} differ on purpose, ${unexpected.length} fail`,
  )
  process.exitCode = unexpected.length === 0 && results.length > 0 ? 0 : 1
} finally {
  rmSync(copy, { recursive: true, force: true })
}
