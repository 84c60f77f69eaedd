// @ts-check
/** The modules of `exports`, put together: few files are loaded sooner than many, and keep less memory. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { at, Failure, readJson } from './step.mjs'

/** What they have in common is in files that they share, so that there is one of everything, as there is of the sources. */
export async function bundle(/** @type {string} */ dist) {
  const { rolldown } = await import('rolldown')
  try {
    const build = await rolldown({ input: entries(dist), platform: 'node', external: isPackage })
    // What all middlewares need is in one file; they are seven.
    const codeSplitting = { groups: [{ name: 'common', minShareCount: 7 }] }
    await build.write({ dir: join(dist, 'bundle'), format: 'esm', chunkFileNames: '[name].js', codeSplitting })
    await build.close()
    if (existsSync(join(dist, 'cli', 'main.js'))) await bundleCommand(dist)
  } catch (error) {
    throw new Failure(`${error}\n\nThe modules could not be bundled.`)
  }
}

/** Dependencies that are part of the command's bundle: opening their 600 files takes half of its start. */
const bundled = ['commander', 'typebox', 'yaml']

/** The command line by itself, so that what it loads does not become part of what the entries share. */
async function bundleCommand(/** @type {string} */ dist) {
  const { rolldown } = await import('rolldown')
  const isExternal = (/** @type {string} */ id) => isPackage(id) && !bundled.includes(id.split('/')[0] ?? '')
  const input = { main: join(dist, 'cli', 'main.js') }
  const build = await rolldown({ input, platform: 'node', external: isExternal })
  const dir = join(dist, 'command')
  await build.write({ dir, format: 'esm', chunkFileNames: '[name].js' })
  await build.close()
  writeFileSync(join(dir, 'LICENSES.txt'), bundled.map(licenseOf).join('\n'))
}

function licenseOf(/** @type {string} */ name) {
  const folder = at('node_modules', name)
  const file = ['LICENSE', 'license', 'LICENSE.md'].map((known) => join(folder, known)).find((path) => existsSync(path))
  if (file === undefined) throw new Error(`node_modules/${name} has no license file`)
  return `${name} ${readJson(join(folder, 'package.json')).version}\n\n${readFileSync(file, 'utf8')}`
}

/** By name, what was compiled of each: where its types are, there it is. */
function entries(/** @type {string} */ dist) {
  const modules = Object.entries(readJson(at('package.json')).exports).filter(([, target]) => target.types)
  return Object.fromEntries(
    modules
      .map(([subpath, { types }]) => [
        subpath.replace(/^\.\/?/, '') || 'index',
        join(dist, types.replace('./dist/', '').replace(/\.d\.ts$/, '.js')),
      ])
      .filter(([, file = '']) => existsSync(file)),
  )
}

const isPackage = (/** @type {string} */ id) => !id.startsWith('.') && !isAbsolute(id)
