/**
 * Eight processes under a concurrency limit of 20; two of them are killed. With FLUXGATE_TEST_LOAD=full they work for half a
 * minute instead of two seconds.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, it, onTestFinished } from 'vitest'
import { createLimiter } from '../../../src/gate/limiter/create-limiter.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { eventually } from '../../fixtures/eventually.js'
import { startRedis } from '../../servers/redis-server.js'

const durationMs = process.env.FLUXGATE_TEST_LOAD === 'full' ? 30_000 : 2_000
const capacity = 20
const maxHold = '3s'

function start(uri: string) {
  const child = spawn(process.execPath, [`${import.meta.dirname}/worker.mjs`, uri, String(capacity), maxHold])
  let output = ''
  child.stdout.on('data', (data) => {
    output += data
  })
  child.stderr.on('data', (data) => {
    output += `stderr ${data}`
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  return { child: child as ChildProcess, output: () => output }
}

it(
  'never has more than 20 in progress, and frees the slots of killed processes after maxHold',
  async () => {
    const server = await startRedis()
    onTestFinished(() => server.stop())
    const uri = `redis://127.0.0.1:${server.port}`
    const processes = Array.from({ length: 8 }, () => start(uri))
    for (const { output } of processes) await eventually('ready', () => output().includes('ready'))
    await new Promise((resolve) => setTimeout(resolve, durationMs / 2))
    for (const { child } of processes.slice(0, 2)) {
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
      // Its work has ended with it.
      for (let number = 0; number < 6; number++) await server.call('SREM', 'in-progress', `${child.pid}:${number}`)
    }
    await new Promise((resolve) => setTimeout(resolve, durationMs / 2))
    for (const { child } of processes.slice(2)) child.kill('SIGTERM')
    for (const { output } of processes.slice(2)) await eventually('done', () => output().includes('done'))
    const outputs = processes.map(({ output }) => output()).join('')
    expect(outputs).not.toMatch(/violation|degraded|expired|stderr/)
    expect(Number(/done (\d+)/.exec(outputs)?.[1])).toBeGreaterThan(0)

    const store = redisStore(uri, { timeoutMs: 20_000 })
    const limiter = createLimiter({ algorithm: 'CONCURRENCY', capacity, maxHold, store })
    onTestFinished(async () => {
      await limiter.close()
      await store.close()
    })
    // A peek reports the slots that are left after this request.
    await eventually('all slots are free', async () => (await limiter.peek('shared')).remaining === capacity - 1)
    for (const key of (await server.call('KEYS', 'fluxgate:*')) as string[])
      expect(Number(await server.call('PTTL', key)), key).toBeGreaterThan(0)
  },
  durationMs + 120_000,
)
