// @ts-check
/** dist holds what the sources say. */
import { chmodSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bundle } from './bundle.mjs'
import { at, Failure, hash, lockHash, readJson, readText, root, run } from './step.mjs'

const stampName = '.fingerprint'

/** @type {import('./step.mjs').Step} */
export const build = {
  doing: 'building',
  needed: () => readText(at('dist', stampName)) !== fingerprint(),
  run: compile,
}

/** By content, so that neither a checkout that only touches files nor a copy that keeps their dates is mistaken. */
function fingerprint() {
  const sources = readdirSync(at('src'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith('.test.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
  const settings = ['package.json', 'tsconfig.json', 'tsconfig.build.json', join('scripts', 'bootstrap', 'bundle.mjs')]
  const inputs = [...settings.map((name) => at(name)), ...sources]
  const lines = inputs.map((file) => `${file.slice(root.length)} ${hash(readFileSync(file))}`)
  return hash([lockHash(), ...lines].join('\n'))
}

/**
 * Into a directory of its own that then takes the place of dist: the output of a deleted source goes, a failed build
 * changes nothing, and whoever uses dist meanwhile sees either the old one or the new one.
 */
async function compile() {
  const next = at('.bootstrap', 'dist')
  const previous = at('.bootstrap', 'previous')
  for (const directory of [next, previous]) rmSync(directory, { recursive: true, force: true })
  // Taken before compiling: a source that changes meanwhile is built by the next run.
  const stamp = fingerprint()
  const tsc = at('node_modules', 'typescript', 'bin', 'tsc')
  const { status, output } = await run([process.execPath, tsc, '-p', 'tsconfig.build.json', '--outDir', next])
  if (status !== 0) throw new Failure(`${output}\n\nThe sources do not compile; the lines above say where.`)
  await bundle(next)
  makeCommandsExecutable(next)
  writeFileSync(join(next, stampName), stamp)
  if (existsSync(at('dist'))) renameSync(at('dist'), previous)
  renameSync(next, at('dist'))
  rmSync(previous, { recursive: true, force: true })
}

function makeCommandsExecutable(/** @type {string} */ dist) {
  for (const file of Object.values(readJson(at('package.json')).bin)) {
    const command = join(dist, file.replace(/^dist\//, ''))
    if (existsSync(command)) chmodSync(command, 0o755)
  }
}
