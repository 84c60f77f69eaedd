import assert from 'node:assert/strict'
import { perUser, type WithRules } from './fixtures.js'

/** The part of the handler contract about delayed and aborted requests. */
export function waitingContract(withRules: WithRules): void {
  const spaced = {
    id: 'spaced',
    algorithm: 'LEAKY_BUCKET',
    limitScope: 'GLOBAL',
    bands: [{ capacity: 3, window: '3s' }],
  }

  withRules('returns the delay of a delayed request', [{ id: 'api', rules: [spaced] }], async (handler) => {
    const delays = []
    for (let i = 0; i < 4; i++) {
      const { allowed, delayMs } = await handler.check({})
      delays.push(allowed ? delayMs : 'rejected')
    }
    assert.deepEqual(delays, [0, 1_000, 2_000, 'rejected'])
  })

  withRules('releases waiting requests in order', [{ id: 'api', rules: [spaced] }], async (handler, clock) => {
    const events: string[] = []
    const check = (name: string) => {
      const onEnter = (): void => void events.push(`${name} waits`)
      return handler.check({}, { onEnter, onLeave: (how) => events.push(`${name} ${how}`) })
    }
    for (const name of ['a', 'b', 'c']) await check(name)
    assert.deepEqual(events, ['b waits', 'c waits'])
    clock.advance(999)
    assert.equal(events.length, 2)
    clock.advance(1)
    assert.deepEqual(events.splice(0), ['b waits', 'c waits', 'b RELEASED'])
    clock.advance(1_000)
    assert.deepEqual(events, ['c RELEASED'])
  })

  withRules('refunds a request that is aborted while it waits', [{ id: 'api', rules: [spaced] }], async (handler) => {
    const outcomes: string[] = []
    await handler.check({})
    const controller = new AbortController()
    const { delayMs } = await handler.check(
      {},
      { signal: () => controller.signal, onLeave: (how) => outcomes.push(how) },
    )
    assert.equal(delayMs, 1_000)
    controller.abort()
    assert.deepEqual(outcomes, ['ABORTED'])
    await eventually(async () => (await handler.check({}, { peek: true })).delayMs === 1_000)
  })

  withRules(
    'calls a signal function only for a request that has to wait',
    [{ id: 'api', rules: [spaced] }],
    async (handler) => {
      let calls = 0
      const signal = (): AbortSignal => {
        calls += 1
        return new AbortController().signal
      }
      await handler.check({}, { signal })
      assert.equal(calls, 0)
      await handler.check({}, { signal, peek: true })
      assert.equal(calls, 0)
      await handler.check({}, { signal })
      assert.equal(calls, 1)
    },
  )

  withRules('charges nothing for an aborted signal', [{ id: 'api', rules: [perUser] }], async (handler) => {
    const signal = AbortSignal.abort(new Error('gone'))
    await assert.rejects(async () => handler.check({ userId: 'ann' }, { signal }), /gone/)
    assert.equal((await handler.check({ userId: 'ann' })).remaining, 1)
  })
}

async function eventually(condition: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 10_000
  while (!(await condition())) {
    if (performance.now() > deadline) assert.fail('The condition was not met within 10 s.')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
