// @ts-check
/** Step: dist is built from the current sources. */
import { chmodSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bundle } from './bundle.mjs'
import { buildConsole } from './console.mjs'
import { at, Failure, hash, lockHash, readJson, readText, root, run } from './step.mjs'

const stampName = '.fingerprint'

/** @type {import('./step.mjs').Step} */
export const build = {
  doing: 'building',
  needed: () => readText(at('dist', stampName)) !== fingerprint(),
  run: compile,
}

/** A digest of contents, because checkouts change modification times and copies may preserve them. */
function fingerprint() {
  const sources = ['src', 'console']
    .filter((folder) => existsSync(at(folder)))
    .flatMap((folder) => readdirSync(at(folder), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && !entry.name.endsWith('.test.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
  const builders = ['bundle.mjs', 'console.mjs'].map((name) => join('scripts', 'bootstrap', name))
  const settings = ['package.json', 'tsconfig.json', 'tsconfig.build.json', ...builders]
  const inputs = [...settings.map((name) => at(name)), ...sources]
  const lines = inputs.map((file) => `${file.slice(root.length)} ${hash(readFileSync(file))}`)
  return hash([lockHash(), ...lines].join('\n'))
}

/**
 * Builds into a separate directory that then replaces dist. Output of deleted sources disappears, a failed build changes
 * nothing, and concurrent readers see either the old or the new dist.
 */
async function compile() {
  const next = at('.bootstrap', 'dist')
  const previous = at('.bootstrap', 'previous')
  for (const directory of [next, previous]) rmSync(directory, { recursive: true, force: true })
  // Computed before compiling: a source that changes during the build is built by the next run.
  const stamp = fingerprint()
  const tsc = at('node_modules', 'typescript', 'bin', 'tsc')
  const { status, output } = await run([process.execPath, tsc, '-p', 'tsconfig.build.json', '--outDir', next])
  if (status !== 0)
    throw new Failure(
      `${output}\n\nThe sources do not compile. Correct the errors above and run the same command again.`,
    )
  await bundle(next)
  await buildConsole(next)
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
