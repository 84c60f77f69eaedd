// @ts-check
/** Bundles the modules in `exports`: a few files load faster than many and use less memory. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'
import { at, Failure, readJson } from './step.mjs'

/** Shared code is in shared chunks, so that every module exists once, as in the sources. */
export async function bundle(/** @type {string} */ dist) {
  const { rolldown } = await import('rolldown')
  try {
    const build = await rolldown({
      input: entries(dist),
      platform: 'node',
      external: isPackage,
      plugins: [hideRedisStore],
    })
    // Code that all seven middlewares share is in one file. As many entries share the Redis client, which no middleware loads.
    const test = (/** @type {string} */ id) => !/[\\/]redis[\\/]client[\\/]/.test(id)
    const codeSplitting = { groups: [{ name: 'common', minShareCount: 7, test }] }
    await build.write({ dir: join(dist, 'bundle'), format: 'esm', chunkFileNames: '[name].js', codeSplitting })
    await build.close()
    await bundleForEdge(dist)
    if (existsSync(join(dist, 'cli', 'main.js'))) await bundleCommand(dist)
  } catch (error) {
    throw new Failure(`${error}\n\nThe modules could not be bundled. See the error above.`)
  }
}

/**
 * Hides the lazy import of the Redis store from bundlers of applications, which would otherwise include it in every program and
 * need ioredis. A call with an argument stays a call: minifiers would insert the value of a constant.
 *
 * @type {import('rolldown').Plugin}
 */
const hideRedisStore = {
  name: 'hide-redis-store',
  transform: {
    filter: { id: /gate[\\/]lazy-redis-store\.js$/ },
    handler(code) {
      const visible = "import('../stores/redis/redis-store.js')"
      if (!code.includes(visible)) throw new Error(`lazy-redis-store.js does not contain ${visible}.`)
      return code.replace(visible, "load('./redis.js')").concat(hiddenImport)
    },
  },
}

const hiddenImport =
  '\nconst load = (file) => import(/* webpackIgnore: true */ /* turbopackIgnore: true */ /* @vite-ignore */ file)\n'

/** Builds the entries that have a variant for edge runtimes and browsers. They contain no Redis code and import nothing. */
async function bundleForEdge(/** @type {string} */ dist) {
  const { rolldown } = await import('rolldown')
  const variants = Object.entries(readJson(at('package.json')).exports).filter(([, target]) => target.workerd)
  const input = Object.fromEntries(
    variants
      .map(([subpath, { types }]) => {
        const name = subpath.replace(/^\.\/?/, '')
        return [
          name || 'index',
          join(dist, name === '' ? 'edge.js' : types.replace('./dist/', '').replace(/\.d\.ts$/, '.js')),
        ]
      })
      .filter(([, file = '']) => existsSync(file)),
  )
  if (Object.keys(input).length === 0) return
  // Unused imports of Node's modules are removed.
  const treeshake = { moduleSideEffects: false }
  const build = await rolldown({
    input,
    platform: 'neutral',
    external: isPackage,
    treeshake,
    // Edge runtimes may have a `process` whose functions throw.
    transform: { define: { 'globalThis.process': 'undefined' } },
    plugins: [replaceForEdge],
  })
  const { output } = await build.write({ dir: join(dist, 'edge'), format: 'esm', chunkFileNames: '[name].js' })
  await build.close()
  const foreign = output.flatMap((file) => ('imports' in file ? file.imports : [])).filter(isPackage)
  const missing = foreign.filter((id) => !output.some(({ fileName }) => fileName === id))
  if (missing.length > 0) throw new Error(`The build for edge runtimes imports ${missing.join(', ')}.`)
}

/** Modules and their replacements in the build for edge runtimes. @type {Readonly<Record<string, string>>} */
const edgeModules = {
  'lazy-redis-store.js': 'no-redis-store.js',
  'decision-reporter.js': 'no-decision-reporter.js',
  'explain-plan.js': 'no-explain-plan.js',
  'rule-matcher.js': 'list-matcher.js',
}

/** @type {import('rolldown').Plugin} */
const replaceForEdge = {
  name: 'replace-for-edge',
  resolveId: {
    filter: { id: /\/(?:lazy-redis-store|decision-reporter|explain-plan|rule-matcher)\.js$/ },
    handler: (id, importer) =>
      importer &&
      join(
        dirname(importer),
        id.replace(/[\w-]+\.js$/, (file) => edgeModules[file] ?? file),
      ),
  },
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

export function licenseOf(/** @type {string} */ name) {
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
