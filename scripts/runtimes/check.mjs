// @ts-check
/**
 * Runs the tests of all examples in other runtimes: `npm run runtimes`. The runtimes are installed from npm into the temporary
 * directory. A runtime that cannot be installed is skipped, and the reason is printed.
 *
 *   --only node24,bun         these runtimes
 *   --examples limit-express  only tests whose name contains this
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
const folder = join(tmpdir(), 'fluxgate-runtimes')
const platform = process.platform === 'win32' ? 'win' : process.platform

/**
 * @typedef {object} Runtime
 * @property {string} name
 * @property {string} from The package that contains the runtime.
 * @property {string} file Its program in the package.
 * @property {readonly string[]} args Arguments before the name of the program to run.
 */

/** @type {(major: number) => Runtime} */
const node = (major) => ({
  name: `node${major}`,
  from: `node-${platform}-${process.arch}@${major}`,
  file: process.platform === 'win32' ? 'bin/node.exe' : 'bin/node',
  args: [],
})

const runtimes = [
  node(20),
  node(22),
  node(24),
  { name: 'bun', from: 'bun@1', file: 'bin/bun.exe', args: ['run'] },
  {
    name: 'deno',
    from: 'deno@2',
    file: process.platform === 'win32' ? 'deno.exe' : 'deno',
    args: ['run', '--allow-all'],
  },
]

/** Installs a runtime. Returns its command, or the reason why it is missing. */
function install(/** @type {Runtime} */ { name, from, file, args }) {
  const directory = join(folder, name)
  const program = join(directory, 'node_modules', name, file)
  const manifest = JSON.stringify({ private: true, dependencies: { [name]: `npm:${from}` } })
  const manifestFile = join(directory, 'package.json')
  if (!existsSync(program) || readFileSync(manifestFile, 'utf8') !== manifest) {
    mkdirSync(directory, { recursive: true })
    writeFileSync(manifestFile, manifest)
    const npm = ['install', '--no-audit', '--no-fund', '--no-package-lock', '--loglevel', 'error']
    const { status, stderr, error } = spawnSync('npm', npm, { cwd: directory, encoding: 'utf8' })
    if (status !== 0) return { reason: error?.message ?? stderr.trim().split('\n')[0] }
  }
  const { status, stdout, error } = spawnSync(program, ['--version'], { encoding: 'utf8' })
  if (status !== 0) return { reason: error?.message ?? `${program} --version failed with status ${status}` }
  return { command: [program, ...args], version: stdout.trim().split('\n')[0] }
}

/** Runs the tests of the examples with a runtime. */
function test(/** @type {readonly string[]} */ command, /** @type {string | undefined} */ examples) {
  const outputFile = join(folder, 'results.json')
  const selected = examples === undefined ? [] : ['--testNamePattern', examples]
  const args = ['vitest', 'run', 'test/examples.test.ts', 'test/recipes.test.ts', '--reporter=json']
  const { stderr } = spawnSync('npx', [...args, '--outputFile', outputFile, ...selected], {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, FLUXGATE_TEST_RUNTIME: JSON.stringify(command) },
  })
  /** @type {{ numPassedTests: number, testResults: { assertionResults: { fullName: string, status: string, failureMessages: string[] }[] }[] }} */
  const { numPassedTests, testResults } = JSON.parse(readFileSync(outputFile, 'utf8'))
  const failed = testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ status }) => status === 'failed')
  if (numPassedTests + failed.length === 0) throw new Error(`No test was run.\n${stderr}`)
  return { passed: numPassedTests, failed }
}

const { values } = parseArgs({ options: { only: { type: 'string' }, examples: { type: 'string' } } })
const names = values.only?.split(',') ?? runtimes.map(({ name }) => name)
const unknown = names.filter((name) => runtimes.every((runtime) => runtime.name !== name))
if (unknown.length > 0)
  throw new Error(
    `--only names unknown runtimes: ${unknown.join(', ')}. Known: ${runtimes.map(({ name }) => name).join(', ')}.`,
  )

for (const runtime of runtimes.filter(({ name }) => names.includes(name))) {
  const { command, version, reason } = install(runtime)
  if (command === undefined) {
    console.log(`${runtime.name}: skipped, because it could not be installed: ${reason}`)
    continue
  }
  const { passed, failed } = test(command, values.examples)
  console.log(`${runtime.name} (${version}): ${passed} passed, ${failed.length} failed`)
  for (const { fullName, failureMessages } of failed)
    console.log(`  ${fullName}\n    ${failureMessages[0]?.split('\n')[0]}`)
  if (failed.length > 0) process.exitCode = 1
}
