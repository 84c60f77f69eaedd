import { getEventListeners } from 'node:events'
import { expect, it } from 'vitest'
import type { Departure } from '../core/waiting/waiting-room.js'
import { manualClock } from '../testing/index.js'
import { HeldRequest, HeldRequests } from './held-request.js'

function heldRequest(disconnecting = new AbortController()): HeldRequest {
  const request = { method: 'GET', url: '/', headers: {}, remoteAddress: undefined, signal: () => disconnecting.signal }
  return new HeldRequest(new HeldRequests(), request, undefined, undefined)
}

it('holds a request for its delay, to the microsecond', async () => {
  const clock = manualClock(0)
  let departure: Departure | undefined
  const waiting = heldRequest()
    .wait(100.5, clock)
    .then((how) => {
      departure = how
    })
  clock.advance(100.499)
  await Promise.resolve()
  expect(departure).toBeUndefined()
  clock.advance(0.001)
  await waiting
  expect(departure).toBe('RELEASED')
})

it('ends at once when the client disconnects, before or while the request is held', async () => {
  const disconnecting = new AbortController()
  const held = heldRequest(disconnecting)
  const waiting = held.wait(1_000, manualClock(0))
  disconnecting.abort()
  expect(await waiting).toBe('ABORTED')
  expect(await held.wait(1_000, manualClock(0))).toBe('ABORTED')
})

it('stops watching the connection of a request that is over, because the connection may carry many more', () => {
  const connection = new AbortController()
  const held = heldRequest(connection)
  held.signal()
  expect(getEventListeners(connection.signal, 'abort')).toHaveLength(1)
  held.group.remove(held)
  expect(getEventListeners(connection.signal, 'abort')).toHaveLength(0)
})
