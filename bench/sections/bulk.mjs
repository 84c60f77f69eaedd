// @ts-check
/** Bulk loads into Redis, compared with redis-cli, and their effect on a limiter that uses the same server. */
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { finished, pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { fluxGateBulk, fluxGateImport, redisCliPipe } from '../bulk/loaders.mjs'
import { writeOverrides } from '../bulk/override-table.mjs'
import { bulkEmit } from '../fluxgate.mjs'
import { Broken, median, quantile } from '../measure.mjs'
import { fluxGate } from '../redis/contenders.mjs'
import { startServer, usedMemory } from '../redis/server.mjs'
import { figure, spreadFigure } from '../results/report.mjs'

export const title = 'Bulk'

const cli = 'redis-cli --pipe'
const fast = 'FluxGate, fast'
const gentle = 'FluxGate, gentle'
/** Decisions of the limiter during a load. */
const decisionsPerSecond = 500

/** @type {import('../results/report.mjs').Section} */
export async function bulk({ bulkRecords, bulkRounds, progress }) {
  const server = await startServer()
  const directory = mkdtempSync(join(tmpdir(), 'fluxgate-bulk-'))
  try {
    const [commands, protocol] = [join(directory, 'commands.txt'), join(directory, 'commands.resp')]
    await writeInputs(commands, protocol, bulkRecords)
    const loaders = [
      redisCliPipe(cli, server.port, protocol, bulkRecords),
      fluxGateBulk(fast, server.uri, commands, 'fast', bulkRecords),
      fluxGateBulk(gentle, server.uri, commands, 'gentle', bulkRecords),
    ]
    const rows = await takeTurns(server, loaders, bulkRounds, progress)
    const [table, sameData] = [join(directory, 'overrides.csv'), join(directory, 'overrides.resp')]
    await writeOverrides(table, sameData, bulkRecords)
    const importers = [
      redisCliPipe(cli, server.port, sameData, bulkRecords),
      fluxGateImport(fast, server.uri, table, 'fast', bulkRecords),
      fluxGateImport(gentle, server.uri, table, 'gentle', bulkRecords),
    ]
    const imports = await takeTurns(server, importers, bulkRounds, progress)
    const memory = await bytesPerOverride(server, bulkRecords)
    progress(`${title}: limiter during a load`)
    const gentleLoads = {
      'gentle load': fluxGateBulk(gentle, server.uri, commands, 'gentle', bulkRecords),
      'gentle import of overrides': fluxGateImport(gentle, server.uri, table, 'gentle', bulkRecords),
    }
    const delays = await delaysDuring(server, gentleLoads, bulkRounds)
    const rateIn = (/** @type {typeof rows} */ of, /** @type {string} */ name) =>
      bulkRecords / median(of.find((row) => row.name === name)?.seconds ?? [Number.NaN])
    const rate = (/** @type {string} */ name) => rateIn(rows, name)
    const peak = (/** @type {typeof rows} */ of) =>
      Math.max(...of.flatMap((row) => row.megabytes).filter((value) => !Number.isNaN(value)))
    /** @type {(title: string, of: typeof rows) => import('../results/report.mjs').FigureTable} */
    const loads = (title, of) => ({
      title,
      head: ['contender', 'records/s', `relative to ${cli}`, 'peak MB'],
      lines: of.map(({ name, megabytes: used }) => [
        name,
        figure(rateIn(of, name)),
        spreadFigure(rateIn(of, name) / rateIn(of, cli)),
        name === cli ? '' : figure(Math.max(...used)),
      ]),
    })
    return {
      title,
      note: `${bulkRecords.toLocaleString('en')} records of about 50 bytes, one HSET each, into hashes of 500 fields, from a file: for redis-cli in the Redis protocol, for FluxGate as plain commands. Each load is a separate process, measured from start to exit.`,
      tables: [],
      figures: [
        loads('Loads', rows),
        loads('Overrides from CSV; for redis-cli, the resulting commands', imports),
        {
          title: `Memory of ${bulkRecords.toLocaleString('en')} overrides with 12-byte keys`,
          head: ['', 'bytes per override'],
          lines: [['used_memory', figure(memory, 1)]],
        },
        {
          title: `Limiter on the same Redis, ${decisionsPerSecond} decisions per second`,
          head: ['concurrent load', 'p50 ms', 'p99 ms', 'max ms'],
          lines: Object.entries(delays).map(([name, waits]) => [
            name,
            ...[0.5, 0.99, 1].map((part) => figure(quantile(waits, part), 2)),
          ]),
        },
      ],
      ratios: [
        { what: `records/s, fast vs ${cli}`, measured: rate(fast) / rate(cli), atLeast: 0.9 },
        { what: 'records/s, gentle vs fast', measured: rate(gentle) / rate(fast), atLeast: 0.33 },
        { what: 'peak MB', measured: peak(rows), atMost: 150 },
        {
          what: `overrides/s, fast vs ${cli} with the same data`,
          measured: rateIn(imports, fast) / rateIn(imports, cli),
          atLeast: 0.9,
        },
        { what: 'peak MB, overrides', measured: peak(imports), atMost: 150 },
        ...['gentle load', 'gentle import of overrides'].map((name) => ({
          what: `p99 ms of decisions during a ${name}`,
          measured: quantile(delays[name] ?? [], 0.99),
          atMost: 3,
        })),
      ],
    }
  } finally {
    rmSync(directory, { recursive: true, force: true })
    await server.stop()
  }
}

/** Returns the memory per override after the last import. */
async function bytesPerOverride(
  /** @type {import('../redis/server.mjs').RedisServer} */ server,
  /** @type {number} */ records,
) {
  const full = await usedMemory(server)
  await server.call('FLUSHALL', 'SYNC')
  return (full - (await usedMemory(server))) / records
}

/** @type {(commands: string, protocol: string, records: number) => Promise<void>} */
async function writeInputs(commands, protocol, records) {
  await pipeline(Readable.from(lines(records)), createWriteStream(commands))
  const stream = createWriteStream(protocol)
  await bulkEmit(stream, commands, { format: 'commands' })
  await finished(stream.end())
}

function* lines(/** @type {number} */ records) {
  const atOnce = 1_000
  const groups = Math.ceil(records / 500)
  for (let from = 0; from < records; from += atOnce) {
    let text = ''
    for (let i = from; i < Math.min(records, from + atOnce); i++)
      text += `HSET group:${(i * 7_919) % groups} key-${10_000_000 + i} LIMIT:5000:60\n`
    yield text
  }
}

/** @type {(server: import('../redis/server.mjs').RedisServer, loaders: readonly import('../bulk/loaders.mjs').Loader[], rounds: number, progress: (text: string) => void) => Promise<{ name: string, seconds: number[], megabytes: number[] }[]>} */
async function takeTurns(server, loaders, rounds, progress) {
  const rows = loaders.map(({ name }) => ({
    name,
    seconds: /** @type {number[]} */ ([]),
    megabytes: /** @type {number[]} */ ([]),
  }))
  for (let round = 0; round < rounds; round++)
    for (let turn = 0; turn < loaders.length; turn++) {
      const index = (turn + round) % loaders.length
      progress(`${title}: round ${round + 1} of ${rounds}, ${rows[index]?.name}`)
      await server.call('FLUSHALL')
      const took = await loaders[index]?.load()
      if (took === undefined) throw new Broken('A loader is missing.')
      rows[index]?.seconds.push(took.seconds)
      rows[index]?.megabytes.push(took.megabytes)
    }
  return rows
}

/** Measures decisions on an idle server and during each load. */
async function delaysDuring(
  /** @type {import('../redis/server.mjs').RedisServer} */ server,
  /** @type {Readonly<Record<string, import('../bulk/loaders.mjs').Loader>>} */ loaders,
  /** @type {number} */ rounds,
) {
  await server.call('FLUSHALL')
  const asker = fluxGate('FluxGate', server.uri, { capacity: 1_000_000, window: '1h' })
  try {
    // Loads the script and compiles the code.
    await askUntil(asker, sleep(500))
    /** @type {Record<string, number[]>} */
    const waits = { none: await askUntil(asker, sleep(500)) }
    for (let round = 0; round < rounds; round++)
      for (const [name, loader] of Object.entries(loaders)) {
        await server.call('FLUSHALL')
        waits[name] = [...(waits[name] ?? []), ...(await askUntil(asker, loader.load()))]
      }
    return waits
  } finally {
    await asker.close()
  }
}

/** @returns {Promise<number[]>} */
async function askUntil(
  /** @type {import('../redis/closed-loop.mjs').Asker} */ asker,
  /** @type {Promise<unknown>} */ end,
) {
  let isOver = false
  const over = end.finally(() => {
    isOver = true
  })
  /** @type {number[]} */
  const waits = []
  for (let i = 0; !isOver; i++) {
    const askedAt = performance.now()
    await asker.ask(`user-${i % 100}`)
    waits.push(performance.now() - askedAt)
    await sleep(1_000 / decisionsPerSecond)
  }
  await over
  return waits
}
