// @ts-check
/** Memory per key in Redis, including its name, hash table entry and expiry. */
import { addresses } from '../access.mjs'
import { Broken } from '../measure.mjs'
import { figure } from '../results/report.mjs'
import { usedMemory } from './server.mjs'

const sample = 100
const concurrency = 512

/**
 * @param {import('./server.mjs').RedisServer} server
 * @param {readonly import('./closed-loop.mjs').Asker[]} askers
 * @param {import('../results/report.mjs').Pace} effort
 * @returns {Promise<import('../results/report.mjs').FigureTable>}
 */
export async function bytesPerKey(server, askers, { redis: { memoryKeys }, progress }) {
  const keys = addresses(memoryKeys)
  const lines = []
  for (const asker of askers) {
    progress(`Redis, bytes per key: ${asker.name}`)
    await server.call('FLUSHALL', 'SYNC')
    await askForAll(asker, keys.slice(0, 1))
    await server.call('FLUSHALL', 'SYNC')
    const before = await usedMemory(server)
    await askForAll(asker, keys)
    const all = (await usedMemory(server)) - before
    const alone = await sampled(server)
    lines.push([asker.name, figure(all / keys.length), figure(alone)])
  }
  return {
    title: `Bytes per key, ${memoryKeys.toLocaleString('en')} keys, one decision each`,
    head: ['contender', 'used_memory', 'MEMORY USAGE'],
    lines,
  }
}

/** Returns the mean MEMORY USAGE of a sample of keys. */
async function sampled(/** @type {import('./server.mjs').RedisServer} */ server) {
  let sum = 0
  for (let i = 0; i < sample; i++)
    sum += Number(await server.call('MEMORY', 'USAGE', String(await server.call('RANDOMKEY'))))
  return sum / sample
}

/** @type {(asker: import('./closed-loop.mjs').Asker, keys: readonly string[]) => Promise<void>} */
export async function askForAll({ name, ask, isAllowed }, keys) {
  let next = 0
  const caller = async () => {
    while (next < keys.length)
      if (!isAllowed(await ask(/** @type {string} */ (keys[next++])))) throw new Broken(`${name} rejected a new key.`)
  }
  await Promise.all(Array.from({ length: concurrency }, caller))
}
