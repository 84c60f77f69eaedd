// @ts-check
/** Step: node_modules matches package-lock.json. */
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { at, Failure, lockHash, readJson, readText, root, run } from './step.mjs'

const stamp = at('node_modules', '.fluxgate-installed')
/** The record that npm writes after a successful install. */
const npmRecord = at('node_modules', '.package-lock.json')

/** @type {import('./step.mjs').Step} */
export const packages = { doing: 'installing packages', needed, run: install }

function needed() {
  const { dependencies, devDependencies } = readJson(at('package.json'))
  const direct = Object.keys({ ...dependencies, ...devDependencies })
  if (!direct.every((name) => existsSync(at('node_modules', name)))) return true
  if (readText(stamp) === lockHash()) return false
  if (!npmInstalledTheLock()) return true
  // npm was run by hand and has installed everything.
  writeFileSync(stamp, lockHash())
  return false
}

function npmInstalledTheLock() {
  if (!existsSync(npmRecord)) return false
  const wanted = readJson(at('package-lock.json')).packages
  const found = readJson(npmRecord).packages
  return Object.keys(wanted).every((path) => {
    if (path === '') return true
    // Optional packages for other platforms are not installed.
    if (!found[path]) return wanted[path].optional === true
    return found[path].version === wanted[path].version && found[path].integrity === wanted[path].integrity
  })
}

/** Both records are removed first and written last, so that an interrupted install is detected and repeated. */
async function install() {
  rmSync(stamp, { force: true })
  rmSync(npmRecord, { force: true })
  const npm = process.env.npm_execpath ? [process.execPath, process.env.npm_execpath] : ['npm']
  // Includes development packages regardless of NODE_ENV, because the compiler is one of them.
  const scope = ['--include=dev', '--prefer-offline', '--no-audit', '--no-fund']
  // npm's default retries take minutes; without a network the error should appear sooner.
  const retries = ['--fetch-retries=2', '--fetch-retry-mintimeout=1000', '--fetch-retry-maxtimeout=5000']
  const { status, output } = await run([...npm, 'ci', ...scope, ...retries])
  if (status !== 0) throw new Failure(`${gist(output)}\n\n${advice(output)}`)
  writeFileSync(stamp, lockHash())
}

/** Extracts the cause from npm's output: the first lines, without stack traces and usage text. */
function gist(/** @type {string} */ output) {
  const relevant = output.split('\n').filter((line) => !/^npm warn|^npm error(\s+at .*)?$/.test(line))
  return relevant.slice(0, 10).join('\n')
}

function advice(/** @type {string} */ output) {
  const again = 'then run the same command again.'
  if (/ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT/.test(output))
    return `The package registry could not be reached. Check the network; behind a proxy, set it with "npm config set https-proxy <address>"; ${again}`
  if (/\bENOSPC\b/.test(output)) return `The disk is full. Free some space, ${again}`
  if (/\b(EACCES|EPERM)\b/.test(output))
    return `npm has no write permission. Make yourself the owner of ${root}, ${again}`
  if (/\bEUSAGE\b/.test(output)) return `package.json and package-lock.json do not match. Run "npm install", ${again}`
  if (/spawn npm ENOENT/.test(output)) return `npm was not found. Install it, ${again}`
  return `The packages could not be installed. If the lines above do not help, delete ${at('node_modules')}, ${again}`
}
