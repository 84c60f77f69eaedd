// @ts-check
/** node_modules holds what package-lock.json asks for. */
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { at, Failure, lockHash, readJson, readText, root, run } from './step.mjs'

const stamp = at('node_modules', '.fluxgate-installed')
/** npm's own record of what is in node_modules; npm writes it when an install has succeeded. */
const npmRecord = at('node_modules', '.package-lock.json')

/** @type {import('./step.mjs').Step} */
export const packages = { doing: 'installing packages', needed, run: install }

function needed() {
  const { dependencies, devDependencies } = readJson(at('package.json'))
  const direct = Object.keys({ ...dependencies, ...devDependencies })
  if (!direct.every((name) => existsSync(at('node_modules', name)))) return true
  if (readText(stamp) === lockHash()) return false
  if (!npmInstalledTheLock()) return true
  // Somebody has run npm by hand: there is nothing to repeat.
  writeFileSync(stamp, lockHash())
  return false
}

function npmInstalledTheLock() {
  if (!existsSync(npmRecord)) return false
  const wanted = readJson(at('package-lock.json')).packages
  const found = readJson(npmRecord).packages
  return Object.keys(wanted).every((path) => {
    if (path === '') return true
    // Optional packages for other platforms are rightly absent.
    if (!found[path]) return wanted[path].optional === true
    return found[path].version === wanted[path].version && found[path].integrity === wanted[path].integrity
  })
}

/** Both records are removed first and written last, so that an interrupted install is noticed and done again. */
async function install() {
  rmSync(stamp, { force: true })
  rmSync(npmRecord, { force: true })
  const npm = process.env.npm_execpath ? [process.execPath, process.env.npm_execpath] : ['npm']
  // Development packages too, whatever NODE_ENV says: the compiler is one of them.
  const scope = ['--include=dev', '--prefer-offline', '--no-audit', '--no-fund']
  // npm's own patience is minutes; without a network nobody should wait that long to hear of it.
  const patience = ['--fetch-retries=2', '--fetch-retry-mintimeout=1000', '--fetch-retry-maxtimeout=5000']
  const { status, output } = await run([...npm, 'ci', ...scope, ...patience])
  if (status !== 0) throw new Failure(`${gist(output)}\n\n${advice(output)}`)
  writeFileSync(stamp, lockHash())
}

/** The cause stands in npm's first lines; stack traces and its own usage text follow. */
function gist(/** @type {string} */ output) {
  const telling = output.split('\n').filter((line) => !/^npm warn|^npm error(\s+at .*)?$/.test(line))
  return telling.slice(0, 10).join('\n')
}

function advice(/** @type {string} */ output) {
  const again = 'then run the same command again.'
  if (/ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT/.test(output))
    return `The package registry could not be reached. Check the network; behind a proxy, set it with "npm config set https-proxy <address>"; ${again}`
  if (/\bENOSPC\b/.test(output)) return `The disk is full. Free some space, ${again}`
  if (/\b(EACCES|EPERM)\b/.test(output)) return `npm may not write here. Make ${root} your own, ${again}`
  if (/\bEUSAGE\b/.test(output)) return `package.json and package-lock.json disagree. Run "npm install", ${again}`
  if (/spawn npm ENOENT/.test(output)) return `npm was not found. Install it, ${again}`
  return `The packages could not be installed. If the lines above do not help, delete ${at('node_modules')}, ${again}`
}
