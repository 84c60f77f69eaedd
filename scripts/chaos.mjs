// @ts-check
/** Runs test/chaos, which is TypeScript, on any supported version of Node: `npm run chaos -- --help`. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { rolldown } from 'rolldown'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const directory = mkdtempSync(join(tmpdir(), 'fluxgate-chaos-'))
process.once('exit', () => rmSync(directory, { recursive: true, force: true }))
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM'])) process.once(signal, () => process.exit(1))

const file = join(directory, 'chaos.mjs')
const build = await rolldown({ input: join(root, 'test', 'chaos', 'main.ts'), platform: 'node' })
await build.write({ file, format: 'esm' })
await build.close()
const { main } = await import(pathToFileURL(file).href)
process.exitCode = await main(process.argv.slice(2), root)
