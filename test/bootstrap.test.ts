/**
 * `scripts/bootstrap.mjs` in a small project that has the real configuration, the real compiler and three source
 * files. npm is played by a script, since these tests must not need a network; `.ci/run` in a clean clone uses the real one.
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

/** Fills node_modules with links to the real packages, and notes each call. */
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
/** Stops in the middle, with some packages in place, for as long as its parent lives. */
const hangingNpm = `
  import { mkdirSync } from 'node:fs'
  mkdirSync('node_modules/typescript', { recursive: true })
  const parent = process.ppid
  setInterval(() => process.ppid === parent || process.exit(), 50)
`

interface Result {
  readonly status: number | null
  readonly said: string
}

interface Call {
  readonly nodeArguments?: string[]
  /** Names of steps that are not always taken. */
  readonly steps?: string[]
  readonly path?: string
  readonly environment?: Record<string, string>
}

function start({ nodeArguments = [], steps = [], path = process.env.PATH ?? '', environment = {} }: Call = {}) {
  const env = { ...process.env, ...environment, PATH: path, npm_execpath: join(project, 'npm.mjs') }
  const child = spawn(process.execPath, [...nodeArguments, 'scripts/bootstrap.mjs', ...steps], { cwd: project, env })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
  }
  const ended = new Promise<Result>((resolve) => {
    child.once('close', (status) => resolve({ status, said }))
  })
  return { child, ended }
}

const bootstrap = (call?: Call): Promise<Result> => start(call).ended

async function eventually(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 20))
}

describe('a fresh clone', () => {
  it('is installed and built, one line each with the time it took; the next run has nothing to do or say', async () => {
    const first = await bootstrap()
    expect(first.said).toMatch(/^installing packages … \d+\.\d s\nbuilding … \d+\.\d s\n$/)
    expect(first.status).toBe(0)
    expect(read('dist/index.js')).toContain('one')
    expect(exists('dist/index.d.ts')).toBe(true)
    expect(statSync(join(project, 'dist/command/main.js')).mode & 0o111).toBe(0o111)

    const second = await bootstrap()
    expect(second).toMatchObject({ status: 0, said: '' })
    expect(exists('.bootstrap/lock')).toBe(false)
  })

  it('is prepared once when several commands are started together', async () => {
    const results = await Promise.all([bootstrap(), bootstrap(), bootstrap()])
    expect(results.map((result) => result.status)).toEqual([0, 0, 0])
    expect(results.filter((result) => result.said.includes('building')).length).toBe(1)
    expect(read('npm-calls').trim().split('\n').length).toBe(1)
    expect(exists('dist/command/main.js')).toBe(true)
  })

  it('reports that Node.js is too old', async () => {
    const pretend =
      'data:text/javascript,Object.defineProperty(process,"versions",{value:{...process.versions,node:"20.18.3"}})'
    const { status, said } = await bootstrap({ nodeArguments: ['--import', pretend] })
    expect(status).toBe(1)
    expect(said).toMatch(/^FluxGate requires Node\.js 20\.19 or later; this is /)
    expect(exists('node_modules')).toBe(false)
  })
})

describe('packages', () => {
  it('are installed again when the lock file has changed', async () => {
    await bootstrap()
    write('package-lock.json', `${read('package-lock.json')}\n`)
    expect((await bootstrap()).said).toMatch(/^installing packages …/)
    expect(read('npm-calls').trim().split('\n').length).toBe(2)
  })

  it('are not installed again when npm was run by hand', async () => {
    cpSync(join(root, 'node_modules/.package-lock.json'), join(project, 'record'))
    write(
      'npm.mjs',
      `${workingNpm}\nimport { cpSync } from 'node:fs'\ncpSync('record', 'node_modules/.package-lock.json')`,
    )
    await bootstrap()
    rmSync(join(project, 'node_modules/.fluxgate-installed'))
    expect(await bootstrap()).toMatchObject({ status: 0, said: '' })
  })

  it('cannot be installed without a network, which is said together with what to try', async () => {
    write('npm.mjs', unreachableNpm)
    const { status, said } = await bootstrap()
    expect(status).toBe(1)
    expect(said).toMatch(/^installing packages … failed\n/)
    expect(said).toContain('The package registry could not be reached. Check the network')
    expect(said).not.toContain('    at ')
  })

  it('are repaired after an interrupted install', async () => {
    write('npm.mjs', hangingNpm)
    const interrupted = start()
    await eventually(() => exists('node_modules/typescript'))
    interrupted.child.kill('SIGTERM')
    expect((await interrupted.ended).status).toBe(143)
    expect(exists('.bootstrap/lock')).toBe(false)

    write('npm.mjs', workingNpm)
    const { status, said } = await bootstrap()
    expect(said).toMatch(/^installing packages … .*\nbuilding … .*\n$/)
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

  it('follows a changed source, and no other output stays behind for a deleted one', async () => {
    write('src/index.ts', 'export const two: number = 2\n')
    rmSync(join(project, 'src/one.ts'))
    expect((await bootstrap()).said).toMatch(/^building … \d+\.\d s\n$/)
    expect(read('dist/index.js')).toContain('two')
    expect(exists('dist/one.js')).toBe(false)
    expect(exists('dist/one.d.ts')).toBe(false)
  })

  it('is not repeated for a new date or for a test', async () => {
    utimesSync(join(project, 'src/one.ts'), new Date(), new Date())
    write('src/one.test.ts', 'export {}\n')
    expect(await bootstrap()).toMatchObject({ status: 0, said: '' })
  })

  it('that fails says where, and leaves what was built before', async () => {
    write('src/one.ts', 'export const one: number = "1"\n')
    const { status, said } = await bootstrap()
    expect(status).toBe(1)
    expect(said).toMatch(/^building … failed\nsrc\/one\.ts\(1,14\): error TS2322: /)
    expect(said).toContain('The sources do not compile')
    expect(said).not.toContain('    at ')
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

  it('is not asked for by a command that needs none', async () => {
    expect(await bootstrap({ path: join(project, 'bin') })).toMatchObject({ status: 0, said: '' })
  })

  it('that is there costs nothing', async () => {
    program('redis-server', '')
    expect(await prepare()).toMatchObject({ status: 0, said: '' })
  })

  it('is installed from the packages of the system, once, and never as a service', async () => {
    program('apt-get', 'exit 1')
    program('sudo', sudoThatInstalls)
    const first = await prepare()
    expect(first.said).toMatch(/^installing redis-server … \d+\.\d s\n$/)
    expect(first.status).toBe(0)
    expect(read('sudo-calls')).toContain('apt-get install -q -y --no-install-recommends')
    expect(read('sudo-calls')).toContain('policy-rc.d')
    expect(await prepare()).toMatchObject({ status: 0, said: '' })
  })

  it('that cannot be installed without a password is asked for, with the command to type', async () => {
    program('apt-get', 'exit 1')
    program('sudo', 'echo "sudo: a password is required" >&2; exit 1')
    const { status, said } = await prepare()
    expect(status).toBe(1)
    expect(said).toContain('redis-server is not on the PATH')
    expect(said).toContain('"sudo apt-get install redis-server", then run the same command again')
  })

  it('that the system cannot deliver is explained in the words of apt', async () => {
    program('apt-get', 'exit 1')
    program(
      'sudo',
      '[ "$2" = sh ] || exit 0; echo "Reading lists"; echo "E: Unable to fetch some archives" >&2; exit 100',
    )
    const { status, said } = await prepare()
    expect(status).toBe(1)
    expect(said).toMatch(/failed\nE: Unable to fetch some archives\n\n/)
    expect(said).not.toContain('Reading lists')
  })

  it('has to be installed by hand where there is no apt', async () => {
    const { status, said } = await prepare()
    expect(status).toBe(1)
    expect(said).toContain('"brew install redis"')
    expect(said).not.toContain('    at ')
  })
})

it('an unknown step is rejected', async () => {
  const { status, said } = await bootstrap({ steps: ['kafka'] })
  expect(status).toBe(1)
  expect(said).toBe('Unknown step "kafka". Use one of redis, mongo.\n')
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

  it('is built where Go is installed, once for all clones, and again when its sources change', async () => {
    program('go', 'shift 5; echo "#!/bin/sh" > "$2"; /bin/chmod 755 "$2"')
    expect((await prepare()).said).toMatch(
      /^building FerretDB, which takes a few minutes the first time … \d+\.\d s\n$/,
    )
    expect(built()).toEqual([expect.stringMatching(/^ferretdb-[0-9a-f]{16}$/)])
    expect(await prepare()).toMatchObject({ status: 0, said: '' })
    write('test/servers/ferretdb/go.mod', 'another')
    expect((await prepare()).status).toBe(0)
    expect(built()).toHaveLength(2)
  })

  it('that cannot be built is explained in the words of Go', async () => {
    program('go', 'echo "go: module not found" >&2; exit 1')
    const { status, said } = await prepare()
    expect(status).toBe(1)
    expect(said).toMatch(/failed\ngo: module not found\n\nFerretDB could not be built\. See the error above\.\n$/)
  })

  it('is not built where there is one, or no Go', async () => {
    expect(await prepare()).toMatchObject({ status: 0, said: '' })
    program('go', 'exit 1')
    expect(await prepare({ FLUXGATE_TEST_MONGO_URI: 'mongodb://host' })).toMatchObject({ status: 0, said: '' })
    program('mongod', '')
    expect(await prepare()).toMatchObject({ status: 0, said: '' })
    expect(built()).toEqual([])
  })
})
