import { expect, it } from 'vitest'
import { unmeteredDecision } from '../core/decision/unmetered-decision.js'
import type { Decision } from '../core/decision.js'
import type { CheckOptions, Handler } from '../core/handler.js'
import { manualClock } from '../testing/index.js'
import { Guard } from './guard.js'

const request = { method: 'GET', url: '/', headers: {}, remoteAddress: '192.0.2.1', signal: () => AbortSignal.abort() }

const delayed: Decision = { ...unmeteredDecision(true, 'ALLOWED', 0), delayMs: 1 }

/** As somebody may write one: what is needed of the options is taken out of them, or they are copied. */
const handlerOf = (check: (options: CheckOptions) => void, decision: Decision = delayed): Handler => ({
  async check(_context, options = {}) {
    check(options)
    return decision
  },
  async refund() {},
})

it.each([
  ['taken out of the options', ({ onEnter, onLeave }: CheckOptions) => [onEnter, onLeave] as const],
  [
    'copied with the options',
    (options: CheckOptions) => [{ ...options }.onEnter, (how: 'RELEASED') => ({ ...options }).onLeave?.(how)] as const,
  ],
])('a handler may use what it is told with when it is %s', async (_, taken) => {
  const left = (options: CheckOptions): void => {
    const [onEnter, onLeave] = taken(options)
    onEnter?.()
    setImmediate(() => onLeave?.('RELEASED'))
  }
  const outcome = await new Guard(handlerOf(left)).admit(request, undefined)
  expect(outcome.kind).toBe('PASS')
})

it('tells the time until a limit opens by the clock that has decided, be it far from its own', async () => {
  const clock = manualClock(5_000_000)
  const handler = handlerOf(({ onDecided }) => onDecided?.(9_000_000), {
    ...unmeteredDecision(true, 'ALLOWED', 9_000_000),
    ruleId: 'r',
    band: 'b',
    limit: 10,
    remaining: 7,
    resetAt: 9_030_000,
  })
  const outcome = await new Guard(handler, { clock }).admit(request, undefined)
  expect(outcome).toMatchObject({ headers: { RateLimit: '"r.b";r=7;t=30', 'X-RateLimit-Reset': '9030' } })
})

it('knows the address also of a client that leaves before it is known whether to count it', async () => {
  const asked: (string | undefined)[] = []
  const handler: Handler = {
    async check({ clientIp }) {
      asked.push(clientIp)
      return unmeteredDecision(true, 'ALLOWED', 0)
    },
    async refund() {},
  }
  const leaving = { ...request, remoteAddress: request.remoteAddress as string | undefined }
  const skip = async (): Promise<boolean> => {
    leaving.remoteAddress = undefined
    return false
  }
  await new Guard(handler, { skip }).admit(leaving, undefined)
  expect(asked).toEqual(['192.0.2.1'])
})

it('hears of a client that is gone through a signal that is taken out of the options', async () => {
  const isGone: boolean[] = []
  const handler = handlerOf(({ signal }) => {
    if (typeof signal === 'function') isGone.push(signal().aborted)
  })
  expect(await new Guard(handler).admit(request, undefined)).toEqual({ kind: 'GONE' })
  expect(isGone).toEqual([true])
})
