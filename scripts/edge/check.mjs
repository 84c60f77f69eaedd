// @ts-check
/**
 * Bundles a program that uses the packed package with esbuild, webpack and Vite, without ioredis, and runs the results in
 * Cloudflare's workerd and in Node: `npm run edge`. The tools are large, so they are installed on demand. They are installed
 * outside the repository, whose packages would otherwise be found.
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { gzipSync } from 'node:zlib'

const tools = { esbuild: '0.28.2', webpack: '5.112.2', workerd: '1.20261110.1' }
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
const folder = join(tmpdir(), 'fluxgate-edge')
const installed = join(folder, 'node_modules', 'fluxgate-js')

/** Runs a command, and exits if it fails. */
function run(/** @type {string} */ command, /** @type {readonly string[]} */ args, cwd = folder) {
  const { status, error, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' })
  if (status === 0) return stdout
  console.error(error ? `${command} could not be run: ${error.message}` : `${stdout}${stderr}`)
  console.error(`Failed: ${command} ${args.join(' ')}`)
  process.exit(1)
}

function installTools() {
  mkdirSync(folder, { recursive: true })
  const manifest = JSON.stringify({ private: true, type: 'module', dependencies: tools })
  const file = join(folder, 'package.json')
  if (existsSync(file) && readFileSync(file, 'utf8') === manifest && existsSync(join(folder, 'node_modules'))) return
  writeFileSync(file, manifest)
  run('npm', ['install', '--no-audit', '--no-fund', '--loglevel', 'error'])
}

/** Installs the packed package with its dependencies, but without its optional peers. */
function installPackage() {
  const [{ filename }] = JSON.parse(
    run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], root),
  )
  rmSync(installed, { recursive: true, force: true })
  mkdirSync(installed, { recursive: true })
  run('tar', ['-xzf', join(folder, filename), '--strip-components=1', '-C', installed])
  for (const name of ['commander', 'undici', 'yaml']) {
    const link = join(folder, 'node_modules', name)
    if (!existsSync(link)) symlinkSync(join(root, 'node_modules', name), link)
  }
}

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
  const port = await freePort()
  const config = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (services = [(name = "main", worker = .main)],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")]);
const main :Workerd.Worker = (modules = [(name = "worker", esModule = embed "${name}")], compatibilityDate = "2025-01-01");
`
  writeFileSync(join(folder, 'config.capnp'), config)
  const child = spawn(join(folder, 'node_modules/.bin/workerd'), ['serve', 'config.capnp'], {
    cwd: folder,
    stdio: 'inherit',
  })
  try {
    await checkResponses(`${name} in workerd`, (path) => request(`http://127.0.0.1:${port}${path}`))
  } finally {
    child.kill()
  }
}

/** Retries until the server listens. */
async function request(/** @type {string} */ url) {
  for (let attempt = 0; ; attempt++) {
    try {
      return await fetch(url)
    } catch (error) {
      if (attempt === 100) throw error
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
}

/** @returns {Promise<number>} */
const freePort = () =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })

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

installTools()
installPackage()
writeFileSync(join(folder, 'worker.mjs'), worker)
const esbuild = ['worker.mjs', '--bundle', '--minify', '--log-level=warning']
const bin = join(folder, 'node_modules/.bin/esbuild')
run(bin, [...esbuild, '--format=esm', '--conditions=workerd,worker,browser', '--outfile=esbuild-workerd.mjs'])
run(bin, [...esbuild, '--format=esm', '--platform=browser', '--outfile=esbuild-browser.mjs'])
// CommonJS, because esbuild cannot put the CommonJS modules of the YAML parser into an ES module for Node.
run(bin, [...esbuild, '--format=cjs', '--platform=node', '--outfile=esbuild-node.cjs'])
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
