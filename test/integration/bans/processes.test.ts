/**
 * Four processes send requests with the same key as fast as they can. With FLUXGATE_TEST_LOAD=full for half a minute instead of
 * two seconds. Every decision of Redis is compared with the definition of a ban, in the order of the server's clock.
 */
import { spawn } from 'node:child_process'
import { expect, it, onTestFinished } from 'vitest'
import type { Ban } from '../../../src/core/bans/ban.js'
import { eventually } from '../../fixtures/eventually.js'
import { startRedis } from '../../servers/redis-server.js'

const durationMs = process.env.FLUXGATE_TEST_LOAD === 'full' ? 30_000 : 2_000
const ms = 1_000
const ban: Ban = { after: 5, withinTicks: 1_000 * ms, forTicks: 100 * ms, factor: 2, maxTicks: 400 * ms }

type Decided = readonly [now: number, outcome: 'ALLOWED' | 'LIMITED' | 'BANNED', retryAfter: number]

function start(uri: string) {
  const child = spawn(process.execPath, [`${import.meta.dirname}/worker.mjs`, uri, JSON.stringify(ban)])
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (data) => {
      output += data
    })
  onTestFinished(() => void child.kill('SIGKILL'))
  return { child, output: () => output }
}

it(
  'bans start and end exactly, escalate, and cost no call while they last, with four processes under load',
  async () => {
    const server = await startRedis()
    onTestFinished(() => server.stop())
    const processes = Array.from({ length: 4 }, () => start(`redis://127.0.0.1:${server.port}`))
    for (const { output } of processes) await eventually('ready', () => output().includes('ready'))
    await new Promise((resolve) => setTimeout(resolve, durationMs))
    const countBans = () => processes.flatMap(({ output }) => output().match(/^ban$/gm) ?? []).length
    await eventually('four bans', () => countBans() >= 4)
    for (const { child } of processes) child.kill('SIGTERM')
    const results = await Promise.all(
      processes.map(async ({ output }) => {
        const [, json = ''] = await eventually('the result', () => /result (.*)\n/.exec(output()) ?? undefined)
        return JSON.parse(json) as { readonly cached: number; readonly decisions: readonly Decided[] }
      }),
    )
    const decisions = results.flatMap((result) => [...result.decisions]).sort(([one], [other]) => one - other)

    const starts = decisions.filter(([, outcome, retryAfter]) => outcome === 'LIMITED' && retryAfter >= ban.forTicks)
    // The escalation starts with `for` and stays at `max`, because the key is banned again before its escalation expires.
    const lengths = starts.map(([, , retryAfter]) => retryAfter / ms)
    expect(lengths).toEqual(starts.map((_, i) => [100, 200][i] ?? 400))
    let before = 0
    for (const [startedAt, , length] of starts) {
      const until = startedAt + length
      // Decisions of one tick are in no particular order.
      const during = decisions.filter(([now]) => now > startedAt && now < until)
      expect(during.every(([now, outcome, retryAfter]) => outcome === 'BANNED' && now + retryAfter === until)).toBe(
        true,
      )
      expect(
        decisions.filter(([now, outcome]) => now >= before && now <= startedAt && outcome === 'LIMITED'),
      ).toHaveLength(5)
      expect(decisions.find(([now]) => now >= until)?.[1] ?? 'ALLOWED').toBe('ALLOWED')
      // A process asks when it learns of the ban, and shortly before the end, because its clock may be ahead by a round trip.
      expect(during.length).toBeLessThanOrEqual(10 * processes.length)
      before = until
    }
    expect(results.reduce((sum, { cached }) => sum + cached, 0)).toBeGreaterThan(0)
  },
  durationMs + 120_000,
)
