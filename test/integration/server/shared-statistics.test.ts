/**
 * Statistics of several processes, read through any of them. A process is represented by a recorder and a connection.
 */
import { Redis } from 'ioredis'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { unmeteredDecision } from '../../../src/core/decision/unmetered-decision.js'
import type { Decision } from '../../../src/core/decision.js'
import { openRedis } from '../../../src/redis/client/open/open-redis.js'
import { DecisionRecorder } from '../../../src/telemetry/decision-recorder.js'
import { keyDigest, showKey } from '../../../src/telemetry/key-digest.js'
import { LocalStatistics } from '../../../src/telemetry/statistics/local-statistics.js'
import { SharedStatistics } from '../../../src/telemetry/statistics/shared-statistics.js'
import { type ManualClock, manualClock } from '../../../src/testing/manual-clock.js'
import { eventually } from '../../fixtures/eventually.js'
import { stopAfterTest } from '../../fixtures/stop-after-test.js'
import { startRedis } from '../../servers/redis-server.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'

const startMs = 1_800_000_000_000
const client = new Redis(sharedRedis().uri)
afterAll(() => void client.disconnect())

interface Setting {
  readonly prefix: string
  readonly clock?: ManualClock
  readonly revealKeys?: boolean
  readonly uri?: string
  readonly onFailure?: (error: unknown) => void
}

function startProcess({ prefix, clock, revealKeys = true, uri = sharedRedis().uri, onFailure }: Setting) {
  const time = clock ?? manualClock(startMs)
  const recorder = new DecisionRecorder(time)
  const local = new LocalStatistics({ recorder, clock: time, showKey: showKey(revealKeys) })
  const statistics = new SharedStatistics({
    connection: openRedis({ uri }),
    prefix,
    recorder,
    revealKeys,
    local,
    ...(clock && { clock }),
    ...(onFailure && { onFailure }),
  })
  onTestFinished(() => statistics.close())
  const decide = (key: string, allowed = true, given: Partial<Decision> = {}, path = '/login'): void =>
    recorder.decided(
      {
        ...unmeteredDecision(allowed, allowed ? 'ALLOWED' : 'LIMITED', 0, { ruleSetId: 'api', ruleId: 'login' }),
        key,
        ...given,
      },
      { method: 'POST', path },
      -1,
    )
  return { recorder, statistics, decide }
}

const two = (setting: Partial<Setting> = {}) => {
  const clock = manualClock(startMs)
  const prefix = freshPrefix()
  return {
    clock,
    prefix,
    one: startProcess({ prefix, clock, ...setting }),
    other: startProcess({ prefix, clock, ...setting }),
  }
}

const named = (rows: readonly { readonly key: string; readonly requests: number; readonly denied: number }[]) =>
  rows.map(({ key, requests, denied }) => `${key} ${requests} ${denied}`)

describe('statistics of several processes', () => {
  it('add up: totals, rules and seconds', async () => {
    const { clock, one, other } = two()
    for (let i = 0; i < 3; i++) one.decide('ann')
    one.decide('ann', false, { degraded: true })
    other.decide('bob', true, { delayMs: 5 })
    other.decide('bob', false, { ruleId: 'search' })
    await one.statistics.flush()
    clock.advance(1_000)
    await other.statistics.flush()
    one.decide('ann')
    await one.statistics.flush()
    await one.statistics.flush()
    clock.advance(1_000)
    const summary = await other.statistics.summary()
    expect(summary.sinceAt).toBe(startMs)
    expect(summary.totals).toEqual({ allowed: 4, delayed: 1, denied: 2, shadowDenied: 0, degraded: 1 })
    expect(summary.rules).toEqual([
      { ruleSetId: 'api', ruleId: 'login', allowed: 4, delayed: 1, denied: 1, shadowDenied: 0 },
      { ruleSetId: 'api', ruleId: 'search', allowed: 0, delayed: 0, denied: 1, shadowDenied: 0 },
    ])
    expect(summary.seconds).toEqual([
      { at: startMs + 1_000, allowed: 3, delayed: 0, denied: 1, shadowDenied: 0 },
      { at: startMs + 2_000, allowed: 1, delayed: 1, denied: 1, shadowDenied: 0 },
    ])
    expect(await one.statistics.summary()).toEqual(summary)
  })

  it('list the most rejected keys across processes, and drop them over time', async () => {
    const { clock, one, other } = two()
    for (let i = 0; i < 6; i++) one.decide('ann', false)
    for (let i = 0; i < 4; i++) for (const process of [one, other]) process.decide('bob', false)
    for (let i = 0; i < 20; i++) other.decide('eve')
    for (const { statistics } of [one, other]) await statistics.flush()
    const top = async (by: 'denied' | 'requests') => named(await one.statistics.top({ by, limit: 2 }))
    expect(await top('denied')).toEqual(['bob 8 8', 'ann 6 6'])
    expect(await top('requests')).toEqual(['eve 20 0', 'bob 8 8'])
    clock.advance(300_000)
    expect(await top('denied')).toEqual(['bob 4 4', 'ann 3 3'])
    for (let i = 0; i < 5; i++) one.decide('ann', false)
    await one.statistics.flush()
    clock.advance(2_000)
    expect(await top('denied')).toEqual(['ann 8 8', 'bob 4 4'])
    clock.advance(900_000)
    expect(await top('denied')).toEqual([])
  })

  it('find keys by prefix, in every script, the most frequent first', async () => {
    const { clock, one, other } = two()
    const keys = ['user:1', 'user:2', 'user:2', '한국', '한글', '한글', '하늘', '😀1', '😀', 'a\u0000b', 'a']
    for (const [i, key] of keys.entries()) (i % 2 ? one : other).decide(key)
    for (const { statistics } of [one, other]) await statistics.flush()
    const found = async (prefix: string) => named(await one.statistics.keys({ prefix, limit: 10 }))
    expect(await found('user:')).toEqual(['user:2 2 0', 'user:1 1 0'])
    expect(await found('한')).toEqual(['한글 2 0', '한국 1 0'])
    expect((await found('😀')).sort()).toEqual(['😀 1 0', '😀1 1 0'].sort())
    expect(await found('a\u0000')).toEqual(['a\u0000b 1 0'])
    expect(await found('nobody')).toEqual([])
    expect((await one.statistics.keys({ prefix: '', limit: 3 })).length).toBe(3)
    const [seen] = await one.statistics.keys({ prefix: 'user:1', limit: 1 })
    expect(seen).toEqual({
      ruleSetId: 'api',
      ruleId: 'login',
      key: 'user:1',
      requests: 1,
      denied: 0,
      lastAt: clock.now(),
    })
  })

  it('sample live keys, each once', async () => {
    const { clock, one } = two()
    for (let i = 0; i < 30; i++) one.decide(`user:${i}`)
    await one.statistics.flush()
    const sample = await one.statistics.sample({ limit: 10 })
    expect(new Set(sample.map(({ key }) => key)).size).toBe(10)
    expect(await one.statistics.sample({ limit: 100 })).toHaveLength(30)
    clock.advance(901_000)
    one.decide('late')
    await one.statistics.flush()
    expect(named(await one.statistics.sample({ limit: 100 }))).toEqual(['late 1 0'])
  })

  it('show recent decisions of all processes, newest first, up to the limit', async () => {
    const { one, other } = two()
    for (let i = 0; i < 3; i++) {
      one.decide(`one ${i}`, i !== 1)
      await one.statistics.flush()
      other.decide(`other ${i}`)
      await other.statistics.flush()
    }
    const recent = await one.statistics.recent({ limit: 4 })
    expect(recent.map(({ key }) => key)).toEqual(['other 2', 'one 2', 'other 1', 'one 1'])
    expect(recent[3]).toMatchObject({ allowed: false, ruleId: 'login', method: 'POST', path: '/login', weight: 1 })
    for (let round = 0; round < 6; round++) {
      for (let i = 0; i < 200; i++) one.decide(`more ${round} ${i}`)
      await one.statistics.flush()
    }
    expect(await one.statistics.recent({ limit: 1_000 })).toHaveLength(500)
  })
})

describe('values chosen by clients', () => {
  it('leave the process as a digest, unless keys may be shown', async () => {
    const { prefix, one, other } = two({ revealKeys: false })
    one.decide('secret-api-key', false)
    await one.statistics.flush()
    const digest = keyDigest('secret-api-key')
    const found = async (process: typeof one, text: string) =>
      (await process.statistics.keys({ prefix: text, limit: 10 })).map(({ key }) => key)
    for (const text of ['secret-api-key', digest.slice(0, 10), '']) {
      expect(await found(one, text)).toEqual([digest])
      expect(await found(other, text)).toEqual([digest])
    }
    // The prefix of a key is known only to the process that has seen it.
    expect(await found(one, 'secret')).toEqual([digest])
    expect(await found(other, 'secret')).toEqual([])
    const names = await client.keys(`${prefix}*`)
    expect(names.length).toBeGreaterThan(5)
    for (const name of names) expect((await client.dump(name))?.toString()).not.toContain('secret')
    const revealing = startProcess({ prefix, clock: manualClock(startMs), revealKeys: true })
    revealing.decide('another-secret', false)
    await revealing.statistics.flush()
    const shown = [
      await one.statistics.top({ by: 'denied', limit: 10 }),
      await one.statistics.keys({ prefix: '', limit: 10 }),
      await one.statistics.recent({ limit: 10 }),
      await one.statistics.sample({ limit: 10 }),
    ]
    expect(JSON.stringify(shown)).toContain(keyDigest('another-secret'))
    expect(JSON.stringify(shown)).not.toContain('another-secret')
  })

  it('are bounded and expire, however many different keys arrive, and frequent keys stay visible', async () => {
    const { prefix, one } = two()
    const base = `${prefix}:{statistics}:`
    for (let round = 0; round < 8; round++) {
      for (let i = 0; i < 900; i++) one.decide(`once ${round} ${i}`, false)
      for (let i = 0; i < 20; i++) one.decide('often', false)
      await one.statistics.flush()
      one.recorder.secondPassed()
    }
    const minute = Math.floor(startMs / 60_000)
    expect(await client.zcard(`${base}${minute}:denied`)).toBeLessThanOrEqual(4_000)
    expect(await client.zcard(`${base}live`)).toBe(7_201)
    const [first] = await one.statistics.top({ by: 'denied', limit: 1 })
    expect(first).toMatchObject({ key: 'often', denied: 160 })
    for (const name of await client.keys(`${prefix}*`))
      expect([name, (await client.pttl(name)) > 0]).toEqual([name, true])
  })
})

describe('permissions', () => {
  it('match the list in the guide', async () => {
    const server = await stopAfterTest(startRedis())
    const rights = '+evalsha +eval +time +pexpire +exists +@hash +@sortedset +@list'
    await server.call('ACL', 'SETUSER', 'counter', 'on', '>pw', '~shop:*', ...rights.split(' '))
    const failures: unknown[] = []
    const onFailure = (error: unknown) => failures.push(error)
    const uri = server.uri.replace('redis://', 'redis://counter:pw@')
    const { statistics, decide } = startProcess({ prefix: 'shop', uri, onFailure })
    decide('ann', false)
    await statistics.flush()
    expect(failures).toEqual([])
    // Another process, which has counted nothing itself, sees it.
    const other = startProcess({ prefix: 'shop', uri }).statistics
    expect((await other.summary()).totals).toMatchObject({ denied: 1 })
    expect(named(await other.top({ by: 'denied', limit: 1 }))).toEqual(['ann 1 1'])
    expect(named(await other.keys({ prefix: 'a', limit: 1 }))).toEqual(['ann 1 1'])
    expect(named(await other.sample({ limit: 1 }))).toEqual(['ann 1 1'])
    expect(await other.recent({ limit: 5 })).toHaveLength(1)
  })
})

describe('during a Redis outage', () => {
  it('each process reports its own counts, and adds them to Redis after recovery', async () => {
    const server = await stopAfterTest(startRedis())
    const failures: unknown[] = []
    const onFailure = (error: unknown) => failures.push(error)
    const { statistics, decide } = startProcess({ prefix: 'shop', uri: server.uri, onFailure })
    decide('ann')
    await statistics.flush()
    await server.kill()
    decide('ann', false)
    for (let i = 0; i < 3; i++) await statistics.flush()
    expect(failures).toEqual([
      expect.objectContaining({ code: expect.stringMatching(/^FLUXGATE_STORE_(FAILED|UNREACHABLE)$/) }),
    ])
    expect((await statistics.summary()).totals).toMatchObject({ allowed: 1, denied: 1 })
    expect(named(await statistics.top({ by: 'denied', limit: 1 }))).toEqual(['ann 2 1'])
    expect(await statistics.recent({ limit: 10 })).toHaveLength(2)
    await server.restart()
    const summary = await eventually('the counts are in Redis', async () => {
      await statistics.flush()
      const found = Number(await server.call('HGET', 'shop:{statistics}:totals', 'denied'))
      return found === 1 && statistics.summary()
    })
    expect(summary.totals).toMatchObject({ denied: 1 })
  })
})
