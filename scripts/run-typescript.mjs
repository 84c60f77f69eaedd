// @ts-check
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { rolldown } from 'rolldown'

const root = dirname(dirname(fileURLToPath(import.meta.url)))

/**
 * Runs `main` of a TypeScript module on any supported version of Node and exits with the status that it returns.
 *
 * @param {string} entry The module, relative to the repository.
 * @param {string} name A name for the temporary folder.
 */
export async function runTypeScript(entry, name) {
  const directory = mkdtempSync(join(tmpdir(), `fluxgate-${name}-`))
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }))
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM'])) process.once(signal, () => process.exit(1))
  const file = join(directory, `${name}.mjs`)
  const build = await rolldown({ input: join(root, entry), platform: 'node' })
  await build.write({ file, format: 'esm' })
  await build.close()
  const { main } = await import(pathToFileURL(file).href)
  process.exitCode = await main(process.argv.slice(2), root)
}
