// @ts-check
/**
 * Tools that check the OpenAPI document and generated clients. They are large, so scripts install them on demand into the
 * ignored folder `.openapi` instead of declaring them as dependencies.
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

export const folder = join(process.cwd(), '.openapi')
export const adminToken = 'openapi-admin-token'

const nodeTools = {
  '@redocly/cli': '2.77.0',
  '@stoplight/spectral-cli': '6.16.3',
  'openapi-fetch': '0.17.0',
  'openapi-typescript': '7.13.0',
  // The newest major that openapi-typescript accepts.
  typescript: '5.9.3',
}
const pythonTools = ['schemathesis==4.32.5', 'openapi-python-client==0.29.1', 'ruff==0.17.5']

/** Runs a command, shows its output, and exits if it fails. */
export function run(/** @type {string} */ command, /** @type {readonly string[]} */ args, cwd = process.cwd()) {
  const { status, error } = spawnSync(command, args, { cwd, stdio: 'inherit' })
  if (status === 0) return
  console.error(error ? `${command} could not be run: ${error.message}` : `${command} exited with status ${status}.`)
  process.exit(1)
}

/** Installs the npm tools; returns the folder that holds them. */
export function withNodeTools() {
  const at = join(folder, 'node')
  installOnce(at, JSON.stringify(nodeTools), () => {
    writeFileSync(join(at, 'package.json'), JSON.stringify({ private: true, dependencies: nodeTools }))
    run('npm', ['install', '--no-audit', '--no-fund', '--loglevel', 'error'], at)
  })
  return at
}

/** Installs the Python tools into a virtual environment; returns the folder of its programs. */
export function withPythonTools() {
  const at = join(folder, 'python')
  installOnce(at, pythonTools.join(' '), () => {
    if (spawnSync('python3', ['-c', 'import venv, sys; sys.exit(sys.version_info < (3, 10))']).status !== 0) {
      console.error(
        'This script requires python3, version 3.10 or later, with the venv module. Install it and try again.',
      )
      process.exit(1)
    }
    run('python3', ['-m', 'venv', at])
    run(join(at, 'bin', 'pip'), ['install', '--quiet', '--disable-pip-version-check', ...pythonTools])
  })
  return join(at, 'bin')
}

function installOnce(/** @type {string} */ at, /** @type {string} */ wanted, /** @type {() => void} */ install) {
  const stamp = join(at, 'installed')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return
  rmSync(at, { recursive: true, force: true })
  mkdirSync(at, { recursive: true })
  install()
  writeFileSync(stamp, wanted)
}

const rules = `ruleSets:
  - id: shop
    rules:
      - id: per-address
        overrides: true
        bands: [{ label: minute, capacity: 5, window: 1m }]
`

/**
 * Runs `use` with the built server on a free port, with an admin token and rules in a temporary directory.
 * @param {(url: string, directory: string) => unknown} use
 */
export async function withServer(use) {
  const directory = mkdtempSync(join(tmpdir(), 'fluxgate-openapi-'))
  writeFileSync(join(directory, 'rules.yaml'), rules)
  const program = join(process.cwd(), 'dist/command/main.js')
  const server = spawn(process.execPath, [program, 'serve', '--port', '0', '--rules', 'rules.yaml', '--json'], {
    cwd: directory,
    env: { ...process.env, FLUXGATE_ADMIN_TOKEN: adminToken, FLUXGATE_LOG_LEVEL: 'error' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const stop = () => server.kill('SIGKILL')
  process.once('exit', stop)
  try {
    let url = ''
    for await (const line of createInterface({ input: server.stdout })) {
      url = JSON.parse(line).api ?? ''
      if (url !== '') break
    }
    if (url === '') throw new Error('The server did not start.')
    const response = await fetch(`${url}/openapi.json`)
    writeFileSync(join(directory, 'openapi.json'), await response.text())
    await use(url, directory)
    if (server.exitCode !== null) throw new Error(`The server exited with status ${server.exitCode}.`)
  } finally {
    stop()
    rmSync(directory, { recursive: true, force: true })
  }
}
