// @ts-check
/**
 * Step: a server for the tests of rules in MongoDB. This is FLUXGATE_TEST_MONGO_URI, mongod, or FerretDB, which is built if Go
 * is installed. Building takes minutes, so the result is cached for all clones on the machine.
 */
import { mkdirSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { at, Failure, findOnPath, hash, isExecutable, isOnPath, run } from './step.mjs'

/** @type {import('./step.mjs').Step} */
export const mongo = {
  doing: 'building FerretDB, which takes a few minutes the first time',
  needed: () => mongoServer() === undefined && isOnPath('go'),
  run: build,
}

const sources = at('test', 'servers', 'ferretdb')

/**
 * Returns the server that the tests use.
 *
 * @returns {{ kind: 'uri' | 'mongod' | 'ferretdb', where: string } | undefined}
 */
export function mongoServer() {
  const uri = process.env.FLUXGATE_TEST_MONGO_URI
  if (uri) return { kind: 'uri', where: uri }
  const mongod = findOnPath('mongod')
  if (mongod !== undefined) return { kind: 'mongod', where: mongod }
  const ferretdb = ferretFile()
  return isExecutable(ferretdb) ? { kind: 'ferretdb', where: ferretdb } : undefined
}

/** The name contains a digest of the sources. */
function ferretFile() {
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache')
  const content = ['main.go', 'go.mod', 'go.sum'].map((name) => readFileSync(join(sources, name), 'utf8'))
  return join(cache, 'fluxgate', `ferretdb-${hash(content.join('')).slice(0, 16)}`)
}

async function build() {
  const file = ferretFile()
  mkdirSync(join(file, '..'), { recursive: true })
  const { status, output } = await run(['go', 'build', '-C', sources, '-trimpath', '-buildvcs=false', '-o', file, '.'])
  if (status !== 0)
    throw new Failure(
      `${output.split('\n').slice(-10).join('\n')}\n\nFerretDB could not be built. See the error above.`,
    )
}
