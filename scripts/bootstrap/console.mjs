// @ts-check
/**
 * Builds the web console into `dist/console`, and its playground as one file, `dist/playground.html`. Their packages are
 * included, so they are no dependencies of the package.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { licenseOf } from './bundle.mjs'
import { at, Failure } from './step.mjs'

const bundled = ['preact', '@preact/signals', '@preact/signals-core', 'uplot', 'yaml']
const inPlayground = ['preact', '@preact/signals', '@preact/signals-core']

export async function buildConsole(/** @type {string} */ dist) {
  const configFile = at('console', 'vite.config.ts')
  if (!existsSync(configFile)) return
  const outDir = join(dist, 'console')
  try {
    const { build } = await import('vite')
    await build({ configFile, logLevel: 'error', build: { outDir } })
    writeFileSync(join(dist, 'playground.html'), await playgroundFile(build, configFile))
  } catch (error) {
    throw new Failure(`${error}\n\nThe console could not be built. See the error above.`)
  }
  writeFileSync(join(outDir, 'LICENSES.txt'), bundled.map(licenseOf).join('\n'))
}

/**
 * The playground with its script and styles inside. Browsers do not load modules from a disk, so the script is not a module.
 *
 * @param {typeof import('vite').build} build
 * @param {string} configFile
 */
async function playgroundFile(build, configFile) {
  const result = await build({ configFile, mode: 'playground', logLevel: 'error' })
  const files = 'output' in result ? result.output : []
  // In this format, the script adds the styles.
  const script = files.flatMap((file) => (file.type === 'chunk' ? file.code : [])).join('')
  const page = files
    .flatMap((file) => ('source' in file && file.fileName.endsWith('.html') ? file.source : []))
    .join('')
  const icon = readFileSync(at('console', 'public', 'icon.svg'), 'base64')
  const licenses = inPlayground.map(licenseOf).join('\n').replaceAll('--', '- -')
  // A function, because a replacement text would interpret the dollar signs of the script.
  return page
    .replace(/\s*<script\b.*?<\/script>/s, '')
    .replace(/href="[^"]*icon\.svg"/, `href="data:image/svg+xml;base64,${icon}"`)
    .replace('</body>', () => `<script>${script.replaceAll('</script', '<\\/script')}</script>\n  </body>`)
    .concat(`<!--\n${licenses}\n-->\n`)
}
