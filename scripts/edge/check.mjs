// @ts-check
/**
 * Bundles a program that uses the packed package with esbuild, webpack and Vite, without ioredis, and runs the results in
 * Cloudflare's workerd and in Node. Then loads the package in Jest: `npm run edge`.
 */
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { gzipSync } from 'node:zlib'
import { run, trialProject, withServer } from '../trial-project.mjs'
import { checkJest } from './jest.mjs'

const folder = trialProject('edge', { esbuild: '0.28.2', webpack: '5.112.2', workerd: '1.20261110.1' })

const worker = `
import { createLimiter } from 'fluxgate-js'
import { rateLimit } from 'fluxgate-js/fetch'
const limiter = createLimiter({ capacity: 2, window: '1h' })
const limit = rateLimit({ capacity: 2, window: '1h', remoteAddress: () => '192.0.2.1' })
const limited = limit.wrap(() => new Response('hello'))
export default {
  fetch: async (request) =>
    request.url.endsWith('/limiter') ? Response.json(await limiter.consume('ann')) : limited(request),
}`

/** Calls the worker in Node. */
async function checkInNode(/** @type {string} */ file) {
  const { default: exported } = await import(pathToFileURL(file).href)
  const handler = exported.default ?? exported
  await checkResponses(file, (path) => handler.fetch(new Request(`http://localhost${path}`)))
}

async function checkResponses(/** @type {string} */ title, /** @type {(path: string) => Promise<Response>} */ send) {
  const statuses = []
  for (let i = 0; i < 3; i++) statuses.push((await send('/')).status)
  const decisions = []
  for (let i = 0; i < 3; i++) {
    const decision = /** @type {any} */ (await (await send('/limiter')).json())
    decisions.push(decision.allowed)
  }
  const seen = JSON.stringify([statuses, decisions])
  if (seen !== '[[200,200,429],[true,true,false]]') throw new Error(`${title}: unexpected responses ${seen}`)
  console.log(`${title.replace(`${folder}/`, '')}: ok`)
}

async function checkInWorkerd(/** @type {string} */ name) {
  const workerd = join(folder, 'node_modules/.bin/workerd')
  const serve = (/** @type {number} */ port) => {
    writeFileSync(join(folder, 'config.capnp'), workerdConfig(name, port))
    return /** @type {[string, ...string[]]} */ ([workerd, 'serve', 'config.capnp'])
  }
  await withServer(folder, serve, (url) => checkResponses(`${name} in workerd`, (path) => fetch(`${url}${path}`)))
}

const workerdConfig = (
  /** @type {string} */ name,
  /** @type {number} */ port,
) => `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (services = [(name = "main", worker = .main)],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")]);
const main :Workerd.Worker = (modules = [(name = "worker", esModule = embed "${name}")], compatibilityDate = "2025-01-01");
`

async function bundleWithWebpack(/** @type {'webworker' | 'node'} */ target) {
  const { default: webpack } = await import(pathToFileURL(join(folder, 'node_modules/webpack/lib/index.js')).href)
  const filename = `webpack-${target}.mjs`
  const output = { path: folder, filename, library: { type: 'module' }, chunkFormat: 'module' }
  const options = { mode: 'production', context: folder, entry: './worker.mjs', target: [target, 'es2022'], output }
  const stats = await new Promise((resolve, reject) => {
    webpack(
      { ...options, experiments: { outputModule: true } },
      (/** @type {unknown} */ error, /** @type {unknown} */ done) => (error ? reject(error) : resolve(done)),
    )
  })
  // A missing optional dependency is a warning.
  if (stats.hasErrors()) throw new Error(stats.toString())
  await checkInNode(join(folder, filename))
}

async function bundleWithVite() {
  const { build } = await import('vite')
  const lib = { entry: join(folder, 'worker.mjs'), formats: /** @type {['es']} */ (['es']), fileName: () => 'vite.mjs' }
  const outDir = join(folder, 'vite')
  await build({
    root: folder,
    logLevel: 'error',
    configFile: false,
    build: { lib, outDir, emptyOutDir: true, minify: true },
  })
  await checkInNode(join(outDir, 'vite.mjs'))
}

writeFileSync(join(folder, 'worker.mjs'), worker)
const esbuild = ['worker.mjs', '--bundle', '--minify', '--log-level=warning']
const bin = join(folder, 'node_modules/.bin/esbuild')
run(bin, [...esbuild, '--format=esm', '--conditions=workerd,worker,browser', '--outfile=esbuild-workerd.mjs'], folder)
run(bin, [...esbuild, '--format=esm', '--platform=browser', '--outfile=esbuild-browser.mjs'], folder)
// CommonJS, because esbuild cannot put the CommonJS modules of the YAML parser into an ES module for Node.
run(bin, [...esbuild, '--format=cjs', '--platform=node', '--outfile=esbuild-node.cjs'], folder)
for (const name of ['esbuild-workerd.mjs', 'esbuild-browser.mjs', 'esbuild-node.cjs']) {
  const code = readFileSync(join(folder, name))
  console.log(`${name}: ${statSync(join(folder, name)).size} bytes, ${gzipSync(code).length} bytes compressed`)
}
await checkInNode(join(folder, 'esbuild-browser.mjs'))
await checkInNode(join(folder, 'esbuild-node.cjs'))
await checkInWorkerd('esbuild-workerd.mjs')
await bundleWithWebpack('webworker')
await bundleWithWebpack('node')
await bundleWithVite()
checkJest()
