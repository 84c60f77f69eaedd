// @ts-check
/** The cost of overrides if no key has one, and if every key has one. */
import { createFluxGate, redisStore } from '../fluxgate.mjs'
import { timesAs } from '../turns.mjs'
import { askForAll } from './bytes-per-key.mjs'
import { freshPrefix, inRedis, ioredis, longTimeout } from './contenders.mjs'
import { inRounds, speedFigures } from './rounds.mjs'

const callers = 64
const without = 'without overrides'
const unused = 'with overrides, no key has one'
const used = 'with overrides, every key has one'

/** @type {(server: import('./server.mjs').RedisServer, names: readonly string[], keys: readonly string[], effort: import('../results/report.mjs').Pace) => Promise<{ figures: import('../results/report.mjs').FigureTable, ratios: import('../results/report.mjs').Findings['ratios'] }>} */
export async function costOfOverrides(server, names, keys, effort) {
  const askers = [
    await gateAsker(server.uri, without, false),
    await gateAsker(server.uri, unused, true),
    await gateAsker(server.uri, used, true, names),
  ]
  for (const asker of askers) await askForAll(asker, names)
  const rows = await inRounds('Redis, overrides', server, askers, keys, callers, effort)
  for (const { close } of askers) await close()
  return {
    figures: speedFigures(`Overrides, ${callers} callers`, rows, without),
    ratios: [unused, used].flatMap((name) => [
      {
        what: `script time, ${name}, ${callers} callers vs without`,
        measured: timesAs(rows, 'scriptUs', name, without),
        atMost: 1.25,
      },
      {
        what: `decisions/s without, ${callers} callers vs ${name}`,
        measured: timesAs(rows, 'perSecond', without, name),
        atMost: 1.25,
      },
    ]),
  }
}

/** @type {(uri: string, name: string, overrides: boolean, names?: readonly string[]) => Promise<import('./closed-loop.mjs').Asker>} */
async function gateAsker(uri, name, overrides, names = []) {
  const { client, close } = ioredis(uri)
  const store = redisStore(client, { prefix: freshPrefix(), ...longTimeout })
  const bands = [{ capacity: 10_000, window: '1d' }]
  const gate = await createFluxGate({
    rules: { id: 'bench', rules: [{ id: 'keys', limitScope: 'API_KEY', overrides, bands }] },
    store,
  })
  const own = { action: 'LIMIT', bands: [{ capacity: 20_000, window: '1d' }] }
  const putSome = async (/** @type {number} */ first) => {
    for (let i = first; i < names.length; i += callers)
      await gate.overrides?.put('bench', 'keys', { key: names[i], ...own })
  }
  await Promise.all(Array.from({ length: callers }, (_, i) => putSome(i)))
  return {
    name,
    ask: (apiKey) => gate.check({ apiKey }),
    isAllowed: inRedis,
    async close() {
      await gate.close()
      await store.close()
      close()
    },
  }
}
