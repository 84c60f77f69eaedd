import { describe, expect, it } from 'vitest'
import { unmeteredDecision } from '../../core/decision/unmetered-decision.js'
import { manualClock } from '../../testing/manual-clock.js'
import { DecisionRecorder } from '../decision-recorder.js'
import { keyDigest, showKey } from '../key-digest.js'
import { LocalStatistics } from './local-statistics.js'

function statisticsOf(revealKeys: boolean) {
  const clock = manualClock(1_000)
  const recorder = new DecisionRecorder(clock)
  const statistics = new LocalStatistics({ recorder, clock, showKey: showKey(revealKeys) })
  const decide = (key: string, allowed: boolean, path = '/login'): void =>
    recorder.decided(
      { ...unmeteredDecision(allowed, 'LIMITED', 0, { ruleSetId: 'api', ruleId: 'login' }), key },
      { method: 'POST', path },
      -1,
    )
  return { clock, recorder, statistics, decide }
}

describe('LocalStatistics', () => {
  it('returns the keys with the most rejections and with the most requests', async () => {
    const { statistics, decide } = statisticsOf(true)
    for (let i = 0; i < 5; i++) decide('ann', true)
    for (let i = 0; i < 3; i++) decide('bob', false)
    expect(await statistics.top({ by: 'denied', limit: 10 })).toEqual([
      { ruleSetId: 'api', ruleId: 'login', key: 'bob', requests: 3, denied: 3, lastAt: 1_000 },
    ])
    for (let i = 0; i < 4; i++) decide('bob', true)
    expect(await statistics.top({ by: 'denied', limit: 10 })).toMatchObject([{ key: 'bob', requests: 7, denied: 3 }])
    for (let i = 0; i < 5; i++) decide('ann', true)
    expect((await statistics.top({ by: 'requests', limit: 1 })).map(({ key }) => key)).toEqual(['ann'])
  })

  it.each([true, false])(
    'counts long keys apart, and shows them as short ones are shown: revealed %s',
    async (reveals) => {
      const { statistics, decide } = statisticsOf(reveals)
      const [long, other] = [`${'x'.repeat(15_000)}a`, `${'x'.repeat(15_000)}b`]
      for (const key of [long, other, long]) decide(key, false)
      const shown = reveals ? [`${'x'.repeat(256)}…`, `${'x'.repeat(256)}…`] : [keyDigest(long), keyDigest(other)]
      const found = await statistics.keys({ prefix: reveals ? 'xxx' : keyDigest(long), limit: 10 })
      expect(found.map(({ key, requests }) => [key, requests])).toEqual(
        reveals
          ? [
              [shown[0], 2],
              [shown[1], 1],
            ]
          : [[shown[0], 2]],
      )
      expect((await statistics.top({ by: 'denied', limit: 10 })).map(({ key }) => key)).toEqual(shown)
      expect((await statistics.recent({ limit: 2 })).map(({ key }) => key)).toEqual(shown)
    },
  )

  it('finds keys by prefix', async () => {
    const { statistics, decide } = statisticsOf(true)
    for (const key of ['user:1', 'user:2', 'admin:1', 'user:2']) decide(key, true)
    const found = await statistics.keys({ prefix: 'user:', limit: 10 })
    expect(found.map(({ key, requests }) => [key, requests])).toEqual([
      ['user:2', 2],
      ['user:1', 1],
    ])
    expect(await statistics.keys({ prefix: 'user:', limit: 1 })).toHaveLength(1)
    expect(await statistics.keys({ prefix: 'nobody', limit: 10 })).toEqual([])
  })

  it('samples different keys at random', async () => {
    const { statistics, decide } = statisticsOf(true)
    for (let i = 0; i < 10; i++) decide(`user:${i}`, true)
    const picked = async (limit: number) => (await statistics.sample({ limit })).map(({ key }) => key)
    expect(new Set(await picked(4)).size).toBe(4)
    expect((await picked(20)).length).toBe(10)
    const seen = new Set<string>()
    for (let i = 0; i < 500 && seen.size < 10; i++) for (const key of await picked(1)) seen.add(key)
    expect(seen.size).toBe(10)
  })

  it('removes the query from paths, because it may contain a token', async () => {
    const { statistics, decide } = statisticsOf(true)
    for (const path of ['/login?token=s3cr3t', '/login#s3cr3t', '/login', '/?\ns3cr3t']) decide('ann', true, path)
    const recent = await statistics.recent({ limit: 10 })
    expect(recent.map(({ path }) => path).sort()).toEqual(['/', '/login', '/login', '/login'])
  })

  it('shows digests unless revealKeys is set, and finds them by key or digest', async () => {
    const { statistics, decide } = statisticsOf(false)
    decide('secret-api-key', false)
    const digest = keyDigest('secret-api-key')
    expect(digest).toMatch(/^sha256:[0-9a-f]{16}$/)
    for (const prefix of ['secret', '', digest.slice(0, 12)])
      expect((await statistics.keys({ prefix, limit: 10 })).map(({ key }) => key)).toEqual([digest])
    const everything = [
      await statistics.summary(),
      await statistics.top({ by: 'denied', limit: 10 }),
      await statistics.recent({ limit: 10 }),
    ]
    expect(JSON.stringify(everything)).not.toContain('secret')
  })

  it('keeps the last 500 decisions, newest first, and truncates values from the client', async () => {
    const { clock, statistics, decide } = statisticsOf(true)
    for (let i = 0; i < 501; i++) {
      decide(`key-${i}`, i % 2 === 0, `/${'x'.repeat(1_000)}`)
      clock.advance(1)
    }
    const recent = await statistics.recent({ limit: 1_000 })
    expect(recent).toHaveLength(500)
    expect(recent[0]).toMatchObject({ at: 1_500, key: 'key-500', allowed: true, method: 'POST', weight: 1 })
    expect(recent[499]).toMatchObject({ at: 1_001, key: 'key-1', allowed: false })
    expect(recent[0]?.path).toHaveLength(256)
    expect(await statistics.recent({ limit: 2 })).toHaveLength(2)
  })
})
