import assert from 'node:assert/strict'
import { perUser, type WithRules } from './handler-bed.js'

/** The part of the contract that is about those who are delayed, and those who leave. */
export function waitingContract(withRules: WithRules): void {
  const spaced = {
    id: 'spaced',
    algorithm: 'LEAKY_BUCKET',
    limitScope: 'GLOBAL',
    bands: [{ capacity: 3, window: '3s' }],
  }

  withRules('tells who is delayed for how long', [{ id: 'api', rules: [spaced] }], async (handler) => {
    const delays = []
    for (let i = 0; i < 4; i++) {
      const { allowed, delayMs } = await handler.check({})
      delays.push(allowed ? delayMs : 'refused')
    }
    assert.deepEqual(delays, [0, 1_000, 2_000, 'refused'])
  })

  withRules('lets those who wait go in their turn', [{ id: 'api', rules: [spaced] }], async (handler, clock) => {
    const gone: string[] = []
    const ask = (name: string) => {
      const onEnter = (): void => void gone.push(`${name} waits`)
      return handler.check({}, { onEnter, onLeave: (how) => gone.push(`${name} ${how}`) })
    }
    for (const name of ['a', 'b', 'c']) await ask(name)
    assert.deepEqual(gone, ['b waits', 'c waits'])
    clock.advance(999)
    assert.equal(gone.length, 2)
    clock.advance(1)
    assert.deepEqual(gone.splice(0), ['b waits', 'c waits', 'b RELEASED'])
    clock.advance(1_000)
    assert.deepEqual(gone, ['c RELEASED'])
  })

  withRules(
    'gives back what those took who leave while they wait',
    [{ id: 'api', rules: [spaced] }],
    async (handler) => {
      const left: string[] = []
      await handler.check({})
      const leaving = new AbortController()
      const { delayMs } = await handler.check({}, { signal: () => leaving.signal, onLeave: (how) => left.push(how) })
      assert.equal(delayMs, 1_000)
      leaving.abort()
      assert.deepEqual(left, ['ABORTED'])
      await eventually(async () => (await handler.check({}, { peek: true })).delayMs === 1_000)
    },
  )

  withRules(
    'asks for a signal only when there is something to wait for',
    [{ id: 'api', rules: [spaced] }],
    async (handler) => {
      let asked = 0
      const signal = (): AbortSignal => {
        asked += 1
        return new AbortController().signal
      }
      await handler.check({}, { signal })
      assert.equal(asked, 0)
      await handler.check({}, { signal, peek: true })
      assert.equal(asked, 0)
      await handler.check({}, { signal })
      assert.equal(asked, 1)
    },
  )

  withRules('has nothing happen for who has left already', [{ id: 'api', rules: [perUser] }], async (handler) => {
    const signal = AbortSignal.abort(new Error('gone'))
    await assert.rejects(async () => handler.check({ userId: 'ann' }, { signal }), /gone/)
    assert.equal((await handler.check({ userId: 'ann' })).remaining, 1)
  })
}

async function eventually(isSo: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 10_000
  while (!(await isSo())) {
    if (performance.now() > deadline) assert.fail('not within 10 s')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
