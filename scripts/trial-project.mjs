// @ts-check
/**
 * Projects outside the repository, whose packages would otherwise be found, in which the packed package is tried. Their tools
 * are large, so they are installed on demand.
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** Runs a command. Exits with its output if it fails. */
export function run(/** @type {string} */ command, /** @type {readonly string[]} */ args, /** @type {string} */ cwd) {
  const { status, error, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' })
  if (status === 0) return stdout
  console.error(error ? `${command} could not be run: ${error.message}` : `${stdout}${stderr}`)
  console.error(`Failed: ${command} ${args.join(' ')}`)
  process.exit(1)
}

/**
 * Creates a project in the temporary directory with these packages and the packed package, whose dependencies are installed but
 * not its optional peers. Returns its folder.
 */
export function trialProject(/** @type {string} */ name, /** @type {Readonly<Record<string, string>>} */ dependencies) {
  const folder = join(tmpdir(), `fluxgate-${name}`)
  mkdirSync(folder, { recursive: true })
  const manifest = JSON.stringify({ private: true, type: 'module', dependencies })
  const file = join(folder, 'package.json')
  if (!existsSync(file) || readFileSync(file, 'utf8') !== manifest || !existsSync(join(folder, 'node_modules'))) {
    writeFileSync(file, manifest)
    run('npm', ['install', '--no-audit', '--no-fund', '--loglevel', 'error'], folder)
  }
  installPackage(folder)
  return folder
}

function installPackage(/** @type {string} */ folder) {
  const pack = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder]
  const [{ filename }] = JSON.parse(run('npm', pack, root))
  const installed = join(folder, 'node_modules', 'fluxgate-js')
  rmSync(installed, { recursive: true, force: true })
  mkdirSync(installed, { recursive: true })
  run('tar', ['-xzf', join(folder, filename), '--strip-components=1', '-C', installed], folder)
  for (const name of ['commander', 'undici', 'yaml']) {
    const link = join(folder, 'node_modules', name)
    if (!existsSync(link)) symlinkSync(join(root, 'node_modules', name), link)
  }
}

/**
 * Runs a server on a free port while `use` is called with its URL.
 *
 * @param {string} folder
 * @param {(port: number) => [command: string, ...args: string[]]} commandFor
 * @param {(url: string) => Promise<void>} use
 */
export async function withServer(folder, commandFor, use) {
  const port = await freePort()
  const [command, ...args] = commandFor(port)
  // A group of its own, so that a server that runs in a child of the command ends too.
  const child = spawn(command, args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'], detached: true })
  try {
    await listening(port)
    await use(`http://127.0.0.1:${port}`)
  } finally {
    if (child.pid !== undefined) process.kill(-child.pid)
  }
}

async function listening(/** @type {number} */ port) {
  for (let attempt = 0; !(await accepts(port)); attempt++) {
    if (attempt === 600) throw new Error('The server did not listen within a minute.')
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/** @returns {Promise<boolean>} */
const accepts = (/** @type {number} */ port) =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false))
    socket.on('connect', () => socket.destroy())
  })

/** @returns {Promise<number>} */
const freePort = () =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })

/** Sends requests one after another. Throws unless their statuses are the expected ones. */
export async function expectStatuses(
  /** @type {string} */ title,
  /** @type {readonly number[]} */ expected,
  /** @type {() => Promise<Response>} */ send,
) {
  const statuses = []
  for (const _ of expected) statuses.push((await send()).status)
  if (statuses.join() !== expected.join()) throw new Error(`${title}: expected ${expected}, received ${statuses}`)
  console.log(`${title}: ok`)
}
