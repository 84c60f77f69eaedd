// @ts-check
/** Duration of prefix queries over many keys that mostly share a prefix. */
import { searchIndex } from '../fluxgate.mjs'
import { Broken, quantile } from '../measure.mjs'
import { figure } from '../results/report.mjs'

const writers = 128
/** Prefixes of all, some, few, one and no key, and prefixes in other scripts. */
const prefixes = ['', 'user:', 'user:1', 'user:12', 'user:123', 'user:12345', '한', '한국', '😀', 'unknown']
const kinds = ['user:', 'user:', 'user:', '한국 ', '한글 ', '😀', 'key-', 'user:']

/**
 * @param {string} title
 * @param {import('../redis/server.mjs').RedisServer} server
 * @param {import('../results/report.mjs').Pace} effort
 */
export async function timedQueries(title, server, { indexRecords, indexQueries, progress }) {
  const index = searchIndex(server.uri, {
    name: 'bench',
    fields: { key: { kind: 'suggest', weight: 'requests' }, text: { kind: 'text', from: 'key' } },
    recent: 0,
    timeoutMs: 60_000,
  })
  try {
    let next = 0
    const write = async () => {
      for (let i = next++; i < indexRecords; i = next++) {
        if (i % 10_000 === 0) progress(`${title}: ${i.toLocaleString('en')} records`)
        // A few keys are frequent, most are rare.
        const requests = 1 + Math.floor(1_000_000 / (1 + ((i * 7919) % indexRecords)))
        await index.put(String(i), { key: `${kinds[i % kinds.length]}${(i * 104_729) % 9_999_991}`, requests })
      }
    }
    await Promise.all(Array.from({ length: writers }, write))
    if ((await index.count()) !== indexRecords) throw new Broken('Some records were not written.')
    progress(`${title}: queries`)
    const none = () => prefixes.map(() => /** @type {number[]} */ ([]))
    const waits = { suggest: none(), find: none() }
    for (let round = -1; round < indexQueries; round++)
      for (const [i, prefix] of prefixes.entries()) {
        const took = {
          suggest: await timed(() => index.suggest('key', prefix, 10)),
          find: await timed(() => index.find({ by: 'text', prefix, limit: 10 })),
        }
        // The first round connects and loads the scripts.
        if (round < 0) continue
        waits.suggest[i]?.push(took.suggest)
        waits.find[i]?.push(took.find)
      }
    const wait = (/** @type {readonly number[]} */ list, /** @type {number} */ part) => figure(quantile(list, part), 2)
    return {
      suggestP99: quantile(waits.suggest.flat(), 0.99),
      findP99: quantile(waits.find.flat(), 0.99),
      table: {
        title: 'Prefix queries, ten results',
        head: ['prefix', 'suggest p50 ms', 'suggest p99 ms', 'find p50 ms', 'find p99 ms'],
        lines: prefixes.map((prefix, i) => {
          const [suggest = [], find = []] = [waits.suggest[i], waits.find[i]]
          return [`"${prefix}"`, ...[suggest, find].flatMap((list) => [wait(list, 0.5), wait(list, 0.99)])]
        }),
      },
    }
  } finally {
    await index.close()
  }
}

async function timed(/** @type {() => Promise<unknown>} */ ask) {
  const startedAt = performance.now()
  await ask()
  return performance.now() - startedAt
}
