// @ts-check
/** Bundles the modules in `exports`: a few files load faster than many and use less memory. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { at, Failure, readJson } from './step.mjs'

/** Shared code is in shared chunks, so that every module exists once, as in the sources. */
export async function bundle(/** @type {string} */ dist) {
  const { rolldown } = await import('rolldown')
  try {
    const build = await rolldown({ input: entries(dist), platform: 'node', external: isPackage })
    // Code that all seven middlewares share is in one file.
    const codeSplitting = { groups: [{ name: 'common', minShareCount: 7 }] }
    await build.write({ dir: join(dist, 'bundle'), format: 'esm', chunkFileNames: '[name].js', codeSplitting })
    await build.close()
    if (existsSync(join(dist, 'cli', 'main.js'))) await bundleCommand(dist)
  } catch (error) {
    throw new Failure(`${error}\n\nThe modules could not be bundled. See the error above.`)
  }
}

/** Dependencies that are included in the bundle of the command: opening their 600 files takes half of its startup time. */
const bundled = ['commander', 'yaml']

/** Bundles the command separately, so that its code does not end up in the shared chunks of the entries. */
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
  if (file === undefined) throw new Error(`node_modules/${name} has no license file.`)
  return `${name} ${readJson(join(folder, 'package.json')).version}\n\n${readFileSync(file, 'utf8')}`
}

/** Returns the compiled module of each entry by name. It is next to the types of the entry. */
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
