/** Processes and connections die during edits, and the index still matches its records exactly. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { seededRandom } from '../../../src/core/seeded-random.js'
import { searchIndex } from '../../../src/search-index.js'
import { eventually } from '../../fixtures/eventually.js'
import { randomSeed } from '../../fixtures/random-seed.js'
import { stopAfterTest } from '../../fixtures/stop-after-test.js'
import { type RedisServer, startRedis } from '../../servers/redis-server.js'
import { fields } from './test-index.js'

const program = fileURLToPath(new URL('writer.mjs', import.meta.url))
const isFull = process.env.FLUXGATE_TEST_LOAD === 'full'
const edits = isFull ? 100_000 : 1_500
const seed = randomSeed()
const options = { name: 'products', fields, maxRecords: 1_200, recent: 50 }

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
  return () => server.stop()
})

/** Number of edits so far. */
const editsOf = async (redis: RedisServer): Promise<number> =>
  Number(await redis.call('HGET', 'fluxgate:{index:products}:meta', 'sequence'))

/** Runs three writers, kills and replaces one of them repeatedly, and cuts connections. */
async function writeWithCrashes(redis: RedisServer, rebuilds: boolean): Promise<{ killed: number; cut: number }> {
  const random = seededRandom(seed)
  const children: ChildProcess[] = []
  onTestFinished(() => {
    for (const child of children) child.kill('SIGKILL')
  })
  const start = async (): Promise<ChildProcess> => {
    const setting = { where: redis.uri, options, seed: Math.floor(random() * 2 ** 31), rebuilds }
    const child = fork(program, [JSON.stringify(setting)])
    children.push(child)
    await once(child, 'message')
    return child
  }
  const end = async (child: ChildProcess | undefined): Promise<void> => {
    if (child === undefined) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
  const writers = await Promise.all([start(), start(), start()])
  const counts = { killed: 0, cut: 0 }
  const isEnough = async (): Promise<boolean> => counts.killed > 1 && counts.cut > 1 && (await editsOf(redis)) >= edits
  for (let step = 0; !(await isEnough()); step++) {
    await new Promise((resolve) => setTimeout(resolve, 20 + random() * 100))
    if (step % 3 === 0) {
      const victim = Math.floor(random() * writers.length)
      await end(writers[victim])
      writers[victim] = await start()
      counts.killed++
    } else {
      counts.cut += Number(await redis.call('CLIENT', 'KILL', 'TYPE', 'normal'))
    }
  }
  await Promise.all(writers.map(end))
  return counts
}

describe(`after ${edits} random edits and crashes, seed ${seed}`, () => {
  it('index and records match', { timeout: 600_000 }, async () => {
    const counts = await writeWithCrashes(server, false)
    const index = searchIndex(server.uri, options)
    onTestFinished(() => index.close())
    const report = await index.verify()
    expect(report).toMatchObject({ isSound: true, problems: [], changedMeanwhile: false })
    expect(report.records).toBeGreaterThan(500)
    expect(report.records).toBeLessThanOrEqual(1_200)
    expect(report.entries).toBeGreaterThan(3_000)
    if (isFull) console.info({ ...counts, ...report })
  })

  it('an interrupted rebuild is completed by the next one', { timeout: 600_000 }, async () => {
    const redis = await stopAfterTest(startRedis())
    await writeWithCrashes(redis, true)
    const index = searchIndex(redis.uri, options)
    onTestFinished(() => index.close())
    await index.rebuild()
    expect(await index.verify()).toMatchObject({ isSound: true, problems: [], changedMeanwhile: false })
    const generation = await redis.call('HGET', 'fluxgate:{index:products}:meta', 'generation')
    const names = (await redis.call('KEYS', 'fluxgate:{index:products}:*')) as string[]
    const ofGenerations = names.map((name) => name.split(':')[3]).filter((part) => /^\d+$/.test(String(part)))
    expect([...new Set(ofGenerations)]).toEqual([generation])
  })

  it('index and records match if Redis itself was killed and replays its log', {
    timeout: 120_000,
  }, async () => {
    const config = ['appendonly yes', 'appendfsync always']
    const redis = await stopAfterTest(startRedis({ config }))
    const random = seededRandom(seed)
    const index = searchIndex(redis.uri, options)
    onTestFinished(() => index.close())
    let isOver = false
    const write = async (): Promise<void> => {
      while (!isOver) {
        const below = (count: number): number => Math.floor(random() * count)
        const record = { name: `user:${below(600)}`, price: below(9), sold: 1, colours: [`tag ${below(5)}`] }
        const edited = random() < 0.8 ? index.put(`p${below(400)}`, record) : index.remove(`p${below(400)}`)
        await edited.catch(() => new Promise((resolve) => setTimeout(resolve, 5)))
      }
    }
    const writing = Promise.all(Array.from({ length: 16 }, write))
    for (let round = 0; round < (isFull ? 20 : 3); round++) {
      const before = await editsOf(redis)
      await eventually('some edits', async () => (await editsOf(redis)) > before + 200)
      await redis.kill()
      await redis.restart()
    }
    isOver = true
    await writing
    const report = await eventually('a report', () => index.verify())
    expect(report).toMatchObject({ isSound: true, problems: [], changedMeanwhile: false })
    expect(report.records).toBeGreaterThan(100)
  })
})
