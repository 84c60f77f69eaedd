import { expect, it } from 'vitest'
import type { CheckOptions, Handler } from '../core/handler.js'
import { unmeteredDecision } from '../core/unmetered-decision.js'
import { Guard } from './guard.js'

const request = { method: 'GET', url: '/', headers: {}, remoteAddress: '192.0.2.1', signal: () => AbortSignal.abort() }

/** As somebody may write one: what is needed of the options is taken out of them, or they are copied. */
const handlerOf = (check: (options: CheckOptions) => void): Handler => ({
  async check(_context, options = {}) {
    check(options)
    return { ...unmeteredDecision(true, 'ALLOWED', 0), delayMs: 1 }
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

it('hears of a client that is gone through a signal that is taken out of the options', async () => {
  const isGone: boolean[] = []
  const handler = handlerOf(({ signal }) => {
    if (typeof signal === 'function') isGone.push(signal().aborted)
  })
  expect(await new Guard(handler).admit(request, undefined)).toEqual({ kind: 'GONE' })
  expect(isGone).toEqual([true])
})
