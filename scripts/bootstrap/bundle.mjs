// @ts-check
/** The modules of `exports`, put together: few files are loaded sooner than many, and keep less memory. */
import { existsSync } from 'node:fs'
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
  } catch (error) {
    throw new Failure(`${error}\n\nThe modules of package.json's "exports" could not be put together.`)
  }
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
