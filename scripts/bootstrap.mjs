// @ts-check
/**
 * Prepares a clone: installs packages and builds dist. `npm start` and `npm test` run it first. Arguments add steps that only
 * some commands need: `redis` installs redis-server, `chromium` a browser for the tests of the console, `mongo` builds a server for
 * the tests of rules in MongoDB if Go is installed, `envoy` downloads Envoy for the tests of its rate limit service if Python is installed.
 *
 * It depends on Node alone, because it runs before anything is installed. If there is nothing to do, it prints nothing and
 * takes no lock. Each step writes its record last, so that the next run repairs an interrupted one.
 */
import { mkdirSync } from 'node:fs'
import { build } from './bootstrap/build.mjs'
import { chromium } from './bootstrap/chromium.mjs'
import { envoy } from './bootstrap/envoy.mjs'
import { withLock } from './bootstrap/lock.mjs'
import { mongo } from './bootstrap/mongo.mjs'
import { packages } from './bootstrap/packages.mjs'
import { redis } from './bootstrap/redis.mjs'
import { at, Failure } from './bootstrap/step.mjs'

/** In order: a step may depend on earlier ones. */
const steps = [packages, build]
const onRequest = new Map([
  ['redis', redis],
  ['mongo', mongo],
  ['chromium', chromium],
  ['envoy', envoy],
])

const say = (/** @type {string} */ text) => process.stderr.write(text)

async function bootstrap() {
  requireNode(20, 19)
  for (const name of process.argv.slice(2)) steps.push(requested(name))
  if (!steps.some((step) => step.needed())) return
  mkdirSync(at('.bootstrap'), { recursive: true })
  const onWait = (/** @type {number} */ owner) =>
    say(`waiting for process ${owner}, which is preparing this directory\n`)
  await withLock(at('.bootstrap', 'lock'), onWait, async () => {
    // Checked again: another run may have done it while this one waited for the lock.
    for (const step of steps) if (step.needed()) await perform(step)
  })
}

function requested(/** @type {string} */ name) {
  const step = onRequest.get(name)
  if (!step) throw new Failure(`Unknown step "${name}". Use one of ${[...onRequest.keys()].join(', ')}.`)
  return step
}

async function perform(/** @type {import('./bootstrap/step.mjs').Step} */ step) {
  const startedAt = performance.now()
  say(`${step.doing} … `)
  try {
    await step.run()
  } catch (error) {
    say('failed\n')
    throw error
  }
  say(`${((performance.now() - startedAt) / 1000).toFixed(1)} s\n`)
}

function requireNode(/** @type {number} */ major, /** @type {number} */ minor) {
  const [haveMajor = 0, haveMinor = 0] = process.versions.node.split('.').map(Number)
  if (haveMajor > major || (haveMajor === major && haveMinor >= minor)) return
  throw new Failure(
    `FluxGate requires Node.js ${major}.${minor} or later; this is ${process.version} (${process.execPath}).`,
  )
}

// Exiting releases the lock and stops the running command.
process.once('SIGINT', () => process.exit(130))
process.once('SIGTERM', () => process.exit(143))

try {
  await bootstrap()
} catch (error) {
  if (!(error instanceof Failure)) throw error
  say(`${error.message}\n`)
  process.exitCode = 1
}
