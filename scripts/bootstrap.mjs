// @ts-check
/**
 * Makes a clone ready to run: packages installed, dist built. `npm start` and `npm test` run it first. What only some
 * commands need is named by an argument: `redis` sees to it that there is a redis-server to start, `mongo` that there is
 * something to test rules in MongoDB with, where Go is installed.
 *
 * It uses nothing but Node, because it runs before anything is installed. When nothing is to be done it prints nothing
 * and takes no lock. Each step records last what it has finished, so that an interrupted run is repaired by the next.
 */
import { mkdirSync } from 'node:fs'
import { build } from './bootstrap/build.mjs'
import { withLock } from './bootstrap/lock.mjs'
import { mongo } from './bootstrap/mongo.mjs'
import { packages } from './bootstrap/packages.mjs'
import { redis } from './bootstrap/redis.mjs'
import { at, Failure } from './bootstrap/step.mjs'

/** In order: a step may rely on those before it. */
const steps = [packages, build]
const onRequest = new Map([
  ['redis', redis],
  ['mongo', mongo],
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
    // Asked again: another run may have done it while this one waited.
    for (const step of steps) if (step.needed()) await perform(step)
  })
}

function requested(/** @type {string} */ name) {
  const step = onRequest.get(name)
  if (!step) throw new Failure(`Nothing is known about "${name}"; there is ${[...onRequest.keys()].join(', ')}.`)
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
    `FluxGate needs Node.js ${major}.${minor} or later; this is ${process.version}, ${process.execPath}.`,
  )
}

// Exiting lets the lock go and ends the command under way.
process.once('SIGINT', () => process.exit(130))
process.once('SIGTERM', () => process.exit(143))

try {
  await bootstrap()
} catch (error) {
  if (!(error instanceof Failure)) throw error
  say(`${error.message}\n`)
  process.exitCode = 1
}
