// @ts-check
/** Builds the web console into `dist/console`. Its packages are included, so they are no dependencies of the package. */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { licenseOf } from './bundle.mjs'
import { at, Failure } from './step.mjs'

const bundled = ['preact', '@preact/signals', '@preact/signals-core', 'uplot', 'yaml']

export async function buildConsole(/** @type {string} */ dist) {
  const configFile = at('console', 'vite.config.ts')
  if (!existsSync(configFile)) return
  const outDir = join(dist, 'console')
  try {
    const { build } = await import('vite')
    await build({ configFile, logLevel: 'error', build: { outDir } })
  } catch (error) {
    throw new Failure(`${error}\n\nThe console could not be built. See the error above.`)
  }
  writeFileSync(join(outDir, 'LICENSES.txt'), bundled.map(licenseOf).join('\n'))
}
