// @ts-check
/** Many records into Redis: beside redis-cli, and beside a limiter that has to answer meanwhile. */
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

export const title = 'Bulk'

const cli = 'redis-cli --pipe'
const fast = 'FluxGate, fast'
const gentle = 'FluxGate, gentle'
/** How often the limiter is asked while a load is under way. */
const asksPerSecond = 500

/** @type {import('../report.mjs').Section} */
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
    progress(`${title}: a limiter meanwhile`)
    const gentleLoads = {
      'a gentle load': fluxGateBulk(gentle, server.uri, commands, 'gentle', bulkRecords),
      'a gentle import of overrides': fluxGateImport(gentle, server.uri, table, 'gentle', bulkRecords),
    }
    const meanwhile = await askMeanwhile(server, gentleLoads, bulkRounds)
    const rateIn = (/** @type {typeof rows} */ of, /** @type {string} */ name) =>
      bulkRecords / median(of.find((row) => row.name === name)?.seconds ?? [Number.NaN])
    const rate = (/** @type {string} */ name) => rateIn(rows, name)
    const peak = (/** @type {typeof rows} */ of) =>
      Math.max(...of.flatMap((row) => row.megabytes).filter((value) => !Number.isNaN(value)))
    /** @type {(title: string, of: typeof rows) => import('../report.mjs').FigureTable} */
    const loads = (title, of) => ({
      title,
      head: ['contender', 'records/s', `times as fast as ${cli}`, 'MB at the peak'],
      lines: of.map(({ name, megabytes: used }) => [
        name,
        Math.round(rateIn(of, name)).toLocaleString('en'),
        (rateIn(of, name) / rateIn(of, cli)).toFixed(2),
        name === cli ? '' : Math.max(...used).toFixed(0),
      ]),
    })
    return {
      title,
      note: `${bulkRecords.toLocaleString('en')} records of about 50 bytes, one HSET each, into hashes of 500 fields, from a file: for redis-cli in the protocol of Redis already, for FluxGate as plain commands. Each load is a process of its own, measured from its start to its end.`,
      tables: [],
      figures: [
        loads('Loads', rows),
        loads('Overrides, from a table; for redis-cli as the commands that write them', imports),
        {
          title: `Overrides in Redis, ${bulkRecords.toLocaleString('en')} with keys of 12 bytes`,
          head: ['', 'bytes each'],
          lines: [['used_memory', memory.toFixed(1)]],
        },
        {
          title: `A limiter in the same Redis, asked ${asksPerSecond} times a second`,
          head: ['meanwhile', 'p50 ms', 'p99 ms', 'longest ms'],
          lines: Object.entries(meanwhile).map(([name, waits]) => [
            name,
            ...[0.5, 0.99, 1].map((part) => quantile(waits, part).toFixed(2)),
          ]),
        },
      ],
      ratios: [
        { what: `records/s, fast : ${cli}`, measured: rate(fast) / rate(cli), atLeast: 0.9 },
        { what: 'records/s, gentle : fast', measured: rate(gentle) / rate(fast), atLeast: 0.33 },
        { what: 'MB at the peak', measured: peak(rows), atMost: 150 },
        {
          what: `overrides/s, fast : ${cli} with the same data`,
          measured: rateIn(imports, fast) / rateIn(imports, cli),
          atLeast: 0.9,
        },
        { what: 'MB at the peak, overrides', measured: peak(imports), atMost: 150 },
        ...['a gentle load', 'a gentle import of overrides'].map((name) => ({
          what: `p99 in ms of decisions during ${name}`,
          measured: quantile(meanwhile[name] ?? [], 0.99),
          atMost: 3,
        })),
      ],
    }
  } finally {
    rmSync(directory, { recursive: true, force: true })
    await server.stop()
  }
}

/** Of those that were imported last. */
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
      if (took === undefined) throw new Broken('There is no loader.')
      rows[index]?.seconds.push(took.seconds)
      rows[index]?.megabytes.push(took.megabytes)
    }
  return rows
}

/** How long a limiter takes to decide, with nothing else to do for the server, and beside a load. */
async function askMeanwhile(
  /** @type {import('../redis/server.mjs').RedisServer} */ server,
  /** @type {Readonly<Record<string, import('../bulk/loaders.mjs').Loader>>} */ loaders,
  /** @type {number} */ rounds,
) {
  await server.call('FLUSHALL')
  const asker = fluxGate('FluxGate', server.uri, { capacity: 1_000_000, window: '1h' })
  try {
    // The script is there, and the code compiled.
    await askUntil(asker, sleep(500))
    /** @type {Record<string, number[]>} */
    const waits = { nothing: await askUntil(asker, sleep(500)) }
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
    await sleep(1_000 / asksPerSecond)
  }
  await over
  return waits
}
