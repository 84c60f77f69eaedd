import { expect, it } from 'vitest'
import { unmeteredDecision } from '../core/decision/unmetered-decision.js'
import type { Decision } from '../core/decision.js'
import type { CheckOptions, Handler } from '../core/handler.js'
import { manualClock } from '../testing/index.js'
import { Guard } from './guard.js'

const request = { method: 'GET', url: '/', headers: {}, remoteAddress: '192.0.2.1', signal: () => AbortSignal.abort() }

const delayed: Decision = { ...unmeteredDecision(true, 'ALLOWED', 0), delayMs: 1 }

/** A handler of another package, which may destructure or copy the options. */
const handlerOf = (check: (options: CheckOptions) => void, decision: Decision = delayed): Handler => ({
  async check(_context, options = {}) {
    check(options)
    return decision
  },
  async refund() {},
})

it.each([
  ['destructured', ({ onEnter, onLeave }: CheckOptions) => [onEnter, onLeave] as const],
  [
    'copied',
    (options: CheckOptions) => [{ ...options }.onEnter, (how: 'RELEASED') => ({ ...options }).onLeave?.(how)] as const,
  ],
])('calls options of a check that a handler has %s', async (_, taken) => {
  const enterAndLeave = (options: CheckOptions): void => {
    const [onEnter, onLeave] = taken(options)
    onEnter?.()
    setImmediate(() => onLeave?.('RELEASED'))
  }
  const outcome = await new Guard(handlerOf(enterAndLeave)).admit(request, undefined)
  expect(outcome.kind).toBe('ALLOWED')
})

it('writes reset times by the clock of the store, even if the local clock differs', async () => {
  const clock = manualClock(5_000_000)
  const handler = handlerOf(() => {}, {
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

it('uses the address of a client that disconnects while a hook runs', async () => {
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

it('aborts the signal in destructured options when the client disconnects', async () => {
  const aborted: boolean[] = []
  const handler = handlerOf(({ signal }) => {
    if (typeof signal === 'function') aborted.push(signal().aborted)
  })
  expect(await new Guard(handler).admit(request, undefined)).toEqual({ kind: 'ABORTED' })
  expect(aborted).toEqual([true])
})

it('decides a request without a delay in the same tick', () => {
  const decision = { ...delayed, delayMs: 0 }
  const handler: Handler = { ...handlerOf(() => {}), decide: () => decision }
  expect(new Guard(handler).admit(request, undefined)).toEqual({ kind: 'ALLOWED', headers: {}, decision })
})

it('rejects instead of throwing when the handler or a hook throws', async () => {
  const error = new Error('closed')
  const handler: Handler = {
    ...handlerOf(() => {}),
    decide() {
      throw error
    },
  }
  await expect(new Guard(handler).admit(request, undefined)).rejects.toBe(error)
  const permits = (): number => {
    throw error
  }
  await expect(
    new Guard(
      handlerOf(() => {}),
      { permits },
    ).admit(request, undefined),
  ).rejects.toBe(error)
})
