/**
 * `scripts/bootstrap.mjs` in a small project with the real configuration, the real compiler and three source files. A script
 * replaces npm, because these tests must not need a network. `.ci/run` uses the real npm in a clean clone.
 */
import { spawn } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
let project: string

beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), 'fluxgate-bootstrap-'))
  for (const name of ['scripts', 'package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.build.json']) {
    cpSync(join(root, name), join(project, name), { recursive: true })
  }
  write('src/index.ts', "export { one } from './one.js'\n")
  write('src/one.ts', 'export const one: number = 1\n')
  write('src/cli/main.ts', '#!/usr/bin/env node\nprocess.stdout.write("ran")\n')
  write('npm.mjs', workingNpm)
})

afterEach(() => rmSync(project, { recursive: true, force: true }))

function write(file: string, text: string): void {
  mkdirSync(dirname(join(project, file)), { recursive: true })
  writeFileSync(join(project, file), text)
}

const read = (file: string): string => readFileSync(join(project, file), 'utf8')
const exists = (file: string): boolean => existsSync(join(project, file))

/** Links the real packages into node_modules and records each call. */
const workingNpm = `
  import { appendFileSync, mkdirSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
  const packages = ${JSON.stringify(join(root, 'node_modules'))}
  appendFileSync('npm-calls', process.argv.slice(2).join(' ') + '\\n')
  rmSync('node_modules', { recursive: true, force: true })
  mkdirSync('node_modules')
  for (const name of readdirSync(packages)) {
    if (!name.startsWith('.')) symlinkSync(packages + '/' + name, 'node_modules/' + name)
  }
`
const unreachableNpm = `
  console.error('npm error code EAI_AGAIN\\nnpm error request to the registry failed, reason: getaddrinfo EAI_AGAIN')
  process.exit(1)
`
/** Hangs after some packages are installed, until its parent exits. */
const hangingNpm = `
  import { mkdirSync } from 'node:fs'
  mkdirSync('node_modules/typescript', { recursive: true })
  const parent = process.ppid
  setInterval(() => process.ppid === parent || process.exit(), 50)
`

interface Result {
  readonly status: number | null
  readonly output: string
}

interface Call {
  readonly nodeArguments?: string[]
  /** Names of optional steps. */
  readonly steps?: string[]
  readonly path?: string
  readonly environment?: Record<string, string>
}

function start({ nodeArguments = [], steps = [], path = process.env.PATH ?? '', environment = {} }: Call = {}) {
  const env = { ...process.env, ...environment, PATH: path, npm_execpath: join(project, 'npm.mjs') }
  const child = spawn(process.execPath, [...nodeArguments, 'scripts/bootstrap.mjs', ...steps], { cwd: project, env })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  const ended = new Promise<Result>((resolve) => {
    child.once('close', (status) => resolve({ status, output }))
  })
  return { child, ended }
}

const bootstrap = (call?: Call): Promise<Result> => start(call).ended

async function eventually(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 20))
}

describe('a fresh clone', () => {
  it('is installed and built with one line of output per step; the next run prints nothing', async () => {
    const first = await bootstrap()
    expect(first.output).toMatch(/^installing packages … \d+\.\d s\nbuilding … \d+\.\d s\n$/)
    expect(first.status).toBe(0)
    expect(read('dist/index.js')).toContain('one')
    expect(exists('dist/index.d.ts')).toBe(true)
    expect(statSync(join(project, 'dist/command/main.js')).mode & 0o111).toBe(0o111)

    const second = await bootstrap()
    expect(second).toMatchObject({ status: 0, output: '' })
    expect(exists('.bootstrap/lock')).toBe(false)
  })

  it('is prepared once if several commands start at the same time', async () => {
    const results = await Promise.all([bootstrap(), bootstrap(), bootstrap()])
    expect(results.map((result) => result.status)).toEqual([0, 0, 0])
    expect(results.filter((result) => result.output.includes('building')).length).toBe(1)
    expect(read('npm-calls').trim().split('\n').length).toBe(1)
    expect(exists('dist/command/main.js')).toBe(true)
  })

  it('reports that Node.js is too old', async () => {
    const pretend =
      'data:text/javascript,Object.defineProperty(process,"versions",{value:{...process.versions,node:"20.18.3"}})'
    const { status, output } = await bootstrap({ nodeArguments: ['--import', pretend] })
    expect(status).toBe(1)
    expect(output).toMatch(/^FluxGate requires Node\.js 20\.19 or later; this is /)
    expect(exists('node_modules')).toBe(false)
  })
})

describe('packages', () => {
  it('are reinstalled after a change of the lock file', async () => {
    await bootstrap()
    write('package-lock.json', `${read('package-lock.json')}\n`)
    expect((await bootstrap()).output).toMatch(/^installing packages …/)
    expect(read('npm-calls').trim().split('\n').length).toBe(2)
  })

  it('are not reinstalled after npm was run manually', async () => {
    cpSync(join(root, 'node_modules/.package-lock.json'), join(project, 'record'))
    write(
      'npm.mjs',
      `${workingNpm}\nimport { cpSync } from 'node:fs'\ncpSync('record', 'node_modules/.package-lock.json')`,
    )
    await bootstrap()
    rmSync(join(project, 'node_modules/.fluxgate-installed'))
    expect(await bootstrap()).toMatchObject({ status: 0, output: '' })
  })

  it('that cannot be installed without a network are reported with a fix', async () => {
    write('npm.mjs', unreachableNpm)
    const { status, output } = await bootstrap()
    expect(status).toBe(1)
    expect(output).toMatch(/^installing packages … failed\n/)
    expect(output).toContain('The package registry could not be reached. Check the network')
    expect(output).not.toContain('    at ')
  })

  it('are repaired after an interrupted install', async () => {
    write('npm.mjs', hangingNpm)
    const interrupted = start()
    await eventually(() => exists('node_modules/typescript'))
    interrupted.child.kill('SIGTERM')
    expect((await interrupted.ended).status).toBe(143)
    expect(exists('.bootstrap/lock')).toBe(false)

    write('npm.mjs', workingNpm)
    const { status, output } = await bootstrap()
    expect(output).toMatch(/^installing packages … .*\nbuilding … .*\n$/)
    expect(status).toBe(0)
  })

  it('are repaired after a run that was killed and left its lock', async () => {
    write('npm.mjs', hangingNpm)
    const killed = start()
    await eventually(() => exists('node_modules/typescript'))
    killed.child.kill('SIGKILL')
    await killed.ended
    expect(exists('.bootstrap/lock')).toBe(true)

    write('npm.mjs', workingNpm)
    expect((await bootstrap()).status).toBe(0)
    expect(exists('dist/index.js')).toBe(true)
  })
})

describe('a build', () => {
  beforeEach(async () => {
    await bootstrap()
  })

  it('is repeated for a changed source, and removes the output of a deleted one', async () => {
    write('src/index.ts', 'export const two: number = 2\n')
    rmSync(join(project, 'src/one.ts'))
    expect((await bootstrap()).output).toMatch(/^building … \d+\.\d s\n$/)
    expect(read('dist/index.js')).toContain('two')
    expect(exists('dist/one.js')).toBe(false)
    expect(exists('dist/one.d.ts')).toBe(false)
  })

  it('is not repeated for a new timestamp or a changed test', async () => {
    utimesSync(join(project, 'src/one.ts'), new Date(), new Date())
    write('src/one.test.ts', 'export {}\n')
    expect(await bootstrap()).toMatchObject({ status: 0, output: '' })
  })

  it('that fails reports the position and keeps the previous output', async () => {
    write('src/one.ts', 'export const one: number = "1"\n')
    const { status, output } = await bootstrap()
    expect(status).toBe(1)
    expect(output).toMatch(/^building … failed\nsrc\/one\.ts\(1,14\): error TS2322: /)
    expect(output).toContain('The sources do not compile')
    expect(output).not.toContain('    at ')
    expect(read('dist/one.js')).toContain('one = 1')
    expect((await bootstrap()).status).toBe(1)
  })
})

/** Scripts that replace the programs on the PATH, because these tests must not change the machine. */
function program(name: string, text: string): void {
  write(`bin/${name}`, `#!/bin/sh\n${text}\n`)
  chmodSync(join(project, 'bin', name), 0o755)
}

describe('redis-server', () => {
  const pretendNoRoot = 'data:text/javascript,process.getuid=()=>1000'
  const prepare = (): Promise<Result> =>
    bootstrap({ nodeArguments: ['--import', pretendNoRoot], steps: ['redis'], path: join(project, 'bin') })
  const sudoThatInstalls = `
    echo "$*" >> sudo-calls
    [ "$2" = sh ] || exit 0
    echo '#!/bin/sh' > bin/redis-server
    /bin/chmod 755 bin/redis-server
  `

  beforeEach(async () => {
    await bootstrap()
  })

  it('is not required by commands that do not need it', async () => {
    expect(await bootstrap({ path: join(project, 'bin') })).toMatchObject({ status: 0, output: '' })
  })

  it('is not installed if it is on the PATH', async () => {
    program('redis-server', '')
    expect(await prepare()).toMatchObject({ status: 0, output: '' })
  })

  it('is installed once from system packages, and never as a service', async () => {
    program('apt-get', 'exit 1')
    program('sudo', sudoThatInstalls)
    const first = await prepare()
    expect(first.output).toMatch(/^installing redis-server … \d+\.\d s\n$/)
    expect(first.status).toBe(0)
    expect(read('sudo-calls')).toContain('apt-get install -q -y --no-install-recommends')
    expect(read('sudo-calls')).toContain('policy-rc.d')
    expect(await prepare()).toMatchObject({ status: 0, output: '' })
  })

  it('that needs a password to install is reported with the command to run', async () => {
    program('apt-get', 'exit 1')
    program('sudo', 'echo "sudo: a password is required" >&2; exit 1')
    const { status, output } = await prepare()
    expect(status).toBe(1)
    expect(output).toContain('redis-server is not on the PATH')
    expect(output).toContain('"sudo apt-get install redis-server", then run the same command again')
  })

  it('that apt fails to install is reported with the error of apt', async () => {
    program('apt-get', 'exit 1')
    program(
      'sudo',
      '[ "$2" = sh ] || exit 0; echo "Reading lists"; echo "E: Unable to fetch some archives" >&2; exit 100',
    )
    const { status, output } = await prepare()
    expect(status).toBe(1)
    expect(output).toMatch(/failed\nE: Unable to fetch some archives\n\n/)
    expect(output).not.toContain('Reading lists')
  })

  it('must be installed manually without apt', async () => {
    const { status, output } = await prepare()
    expect(status).toBe(1)
    expect(output).toContain('"brew install redis"')
    expect(output).not.toContain('    at ')
  })
})

it('an unknown step is rejected', async () => {
  const { status, output } = await bootstrap({ steps: ['kafka'] })
  expect(status).toBe(1)
  expect(output).toBe('Unknown step "kafka". Use one of redis, mongo, chromium, envoy.\n')
})

describe('a server for rules in MongoDB', () => {
  const built = (): string[] => (exists('cache/fluxgate') ? readdirSync(join(project, 'cache/fluxgate')) : [])
  const prepare = (environment: Record<string, string> = {}): Promise<Result> => {
    const clean = { FLUXGATE_TEST_MONGO_URI: '', XDG_CACHE_HOME: join(project, 'cache') }
    return bootstrap({ steps: ['mongo'], path: join(project, 'bin'), environment: { ...clean, ...environment } })
  }

  beforeEach(async () => {
    for (const name of ['main.go', 'go.mod', 'go.sum']) write(`test/servers/ferretdb/${name}`, name)
    await bootstrap()
  })

  it('is built if Go is installed, once for all clones, and again after its sources change', async () => {
    program('go', 'shift 5; echo "#!/bin/sh" > "$2"; /bin/chmod 755 "$2"')
    expect((await prepare()).output).toMatch(
      /^building FerretDB, which takes a few minutes the first time … \d+\.\d s\n$/,
    )
    expect(built()).toEqual([expect.stringMatching(/^ferretdb-[0-9a-f]{16}$/)])
    expect(await prepare()).toMatchObject({ status: 0, output: '' })
    write('test/servers/ferretdb/go.mod', 'another')
    expect((await prepare()).status).toBe(0)
    expect(built()).toHaveLength(2)
  })

  it('that Go fails to build is reported with the error of Go', async () => {
    program('go', 'echo "go: module not found" >&2; exit 1')
    const { status, output } = await prepare()
    expect(status).toBe(1)
    expect(output).toMatch(/failed\ngo: module not found\n\nFerretDB could not be built\. See the error above\.\n$/)
  })

  it('is not built if one exists or Go is missing', async () => {
    expect(await prepare()).toMatchObject({ status: 0, output: '' })
    program('go', 'exit 1')
    expect(await prepare({ FLUXGATE_TEST_MONGO_URI: 'mongodb://host' })).toMatchObject({ status: 0, output: '' })
    program('mongod', '')
    expect(await prepare()).toMatchObject({ status: 0, output: '' })
    expect(built()).toEqual([])
  })
})
