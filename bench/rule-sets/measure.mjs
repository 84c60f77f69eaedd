// @ts-check
/**
 * Edits and reloads of large rule sets while a server decides: how long its event loop is kept from decisions, how long a
 * check takes during it, and how long the change itself takes.
 *
 * @typedef {object} Size
 * @property {number} rules of a PUT and of a reload
 * @property {number} manyRules of another reload, where the store takes so many
 *
 * @typedef {object} Change
 * @property {string} name
 * @property {number} longestCpuMs CPU time of the main thread in one turn of the event loop
 * @property {number} longestCheckMs
 * @property {number} seconds until the change is in effect
 * @property {number} cpuSeconds of the main thread
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { runnerImport } from 'vite'
import { mongoServer } from '../../scripts/bootstrap/mongo.mjs'
import { startChild } from '../child.mjs'
import { Broken } from '../measure.mjs'
import { startServer as startRedis } from '../redis/server.mjs'
import { commandOf, startServer } from './server.mjs'

const mongoHarness = new URL('../../test/servers/mongo-server.ts', import.meta.url)

/** A rule set of the most usual kind: a path and a band for each rule. */
const ruleSet = (/** @type {number} */ count, /** @type {number} */ capacity) => ({
  id: 'api',
  rules: Array.from({ length: count }, (_, i) => ({
    id: `r${i}`,
    path: `/a${i}`,
    bands: [{ capacity, window: '1h' }],
  })),
})

/** @typedef {ReturnType<typeof ruleSet>} RuleSet */

const json = (/** @type {RuleSet} */ set) => JSON.stringify({ ruleSets: [set] })

const yaml = (/** @type {RuleSet} */ { id, rules }) =>
  `ruleSets:\n  - id: ${id}\n    rules:\n${rules
    .map(
      ({ id, path, bands: [band] }) =>
        `      - id: ${id}\n        path: ${path}\n        bands: [{ capacity: ${band?.capacity}, window: 1h }]\n`,
    )
    .join('')}`

/**
 * A place for rules.
 *
 * @typedef {object} Place
 * @property {string} name
 * @property {object} rules the part of a configuration
 * @property {(set: RuleSet) => Promise<unknown>} write as others do, without the server
 * @property {boolean} takesMany more rules than fit into a request
 * @property {boolean} isSlow FerretDB searches all documents for each one that it replaces, so that thousands take minutes
 */

const places = ['JSON file', 'YAML file', 'Redis', 'MongoDB']

/**
 * @param {URL} root of the checkout
 * @param {Size} size
 * @param {(text: string) => void} progress
 * @param {readonly string[]} wanted
 * @returns {Promise<Change[]>}
 */
export async function measureRuleSets(root, size, progress, wanted = places) {
  /** @type {Change[]} */
  const changes = []
  for (const name of wanted) {
    const directory = mkdtempSync(join(tmpdir(), 'fluxgate-rule-sets-'))
    const database = await openDatabase(name)
    try {
      if (database === undefined) continue
      const place = placeOf(name, directory, database.uri, root)
      changes.push(...(await measurePlace(root, place, directory, size, progress)))
    } finally {
      await database?.stop()
      rmSync(directory, { recursive: true, force: true })
    }
  }
  return changes
}

/** Undefined if there is no such server on this machine. */
async function openDatabase(/** @type {string} */ name) {
  if (name === 'Redis') return startRedis()
  if (name !== 'MongoDB') return { uri: '', stop: async () => {} }
  if (mongoServer() === undefined) return undefined
  /** @type {{ module: typeof import('../../test/servers/mongo-server.js') }} */
  const { module } = await runnerImport(mongoHarness.pathname)
  return module.openMongo()
}

/** @type {(name: string, directory: string, uri: string, root: URL) => Place} */
function placeOf(name, directory, uri, root) {
  if (name.endsWith('file')) {
    const isJson = name.startsWith('JSON')
    const path = join(directory, isJson ? 'rules.json' : 'rules.yaml')
    const write = async (/** @type {RuleSet} */ set) => writeFileSync(path, isJson ? json(set) : yaml(set))
    return { name, rules: { path }, write, takesMany: isJson, isSlow: false }
  }
  const rules = name === 'Redis' ? { type: 'redis', uri } : { type: 'mongo', uri }
  const write = async (/** @type {RuleSet} */ set) => {
    const [document, config] = [join(directory, 'apply.json'), join(directory, 'apply-config.json')]
    writeFileSync(document, json(set))
    writeFileSync(config, JSON.stringify({ rules }))
    await promisify(execFile)(process.execPath, [commandOf(root), 'rules', 'apply', document, '--config', config], {
      maxBuffer: 2 ** 30,
    })
  }
  return {
    name,
    rules,
    write,
    takesMany: name === 'Redis',
    isSlow: name === 'MongoDB' && mongoServer()?.kind === 'ferretdb',
  }
}

/** @type {(root: URL, place: Place, directory: string, size: Size, progress: (text: string) => void) => Promise<Change[]>} */
async function measurePlace(root, place, directory, size, progress) {
  await place.write(ruleSet(8, 1))
  const server = await startServer(root, directory, place.rules)
  const checks = startChild(new URL('checks.mjs', import.meta.url), [])
  await checks.heard()
  /** @type {(order: any) => Promise<import('./checks.mjs').Outcome>} */
  const tell = (order) => {
    const heard = checks.heard()
    checks.tell(order)
    return heard
  }
  /** @type {(what: string, change: () => Promise<unknown>) => Promise<Change>} */
  const measure = async (what, change) => {
    const name = `${place.name}, ${what}`
    progress(name)
    await tell({ port: server.port })
    await pause(500)
    await server.turns('begin')
    const startedAt = performance.now()
    await change()
    const seconds = (performance.now() - startedAt) / 1_000
    const turns = await server.turns('end')
    await pause(100)
    const { longestMs, answered, failed } = await tell('end')
    if (answered === 0 || failed > 0) throw new Broken(`${name}: ${failed} checks failed, ${answered} were answered.`)
    return {
      name,
      longestCpuMs: turns.longestCpuMs,
      longestCheckMs: longestMs,
      seconds,
      cpuSeconds: turns.cpuMs / 1_000,
    }
  }
  const put = (/** @type {number} */ capacity) =>
    server.ask('PUT', '/api/rule-sets/api', JSON.stringify(ruleSet(size.rules, capacity)))
  const reload = () => server.ask('POST', '/api/reload')
  const shown = (/** @type {number} */ count) => `${count.toLocaleString('en')} rules`
  try {
    const changes = [
      await measure('no change', () => pause(1_000)),
      await measure(`PUT of ${shown(size.rules)}`, () => put(1)),
    ]
    if (place.isSlow) return [...changes, await measure(`reload of ${shown(size.rules)}, as they were`, reload)]
    changes.push(await measure(`PUT of ${shown(size.rules)}, all changed`, () => put(2)))
    for (const [index, count] of (place.takesMany ? [size.rules, size.manyRules] : [size.rules]).entries()) {
      const set = ruleSet(count, 3 + index)
      changes.push(await measure(`reload of ${shown(count)}`, () => place.write(set).then(reload)))
    }
    return changes
  } finally {
    checks.stop()
    await server.stop()
  }
}
