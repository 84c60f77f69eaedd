import { expect, it } from 'vitest'
import { manualClock } from '../testing/index.js'
import { hold } from './hold.js'

it('holds a request until its time, to the microsecond', async () => {
  const clock = manualClock(0)
  let answer: boolean | undefined
  const held = hold(100.5, new AbortController().signal, clock).then((result) => {
    answer = result
  })
  clock.advance(100.499)
  await Promise.resolve()
  expect(answer).toBeUndefined()
  clock.advance(0.001)
  await held
  expect(answer).toBe(true)
})

it('ends at once when the caller leaves, before or while it is held', async () => {
  const leaving = new AbortController()
  const held = hold(1_000, leaving.signal, manualClock(0))
  leaving.abort()
  expect(await held).toBe(false)
  expect(await hold(1_000, leaving.signal, manualClock(0))).toBe(false)
})

it('does not hold what is not delayed', async () => {
  expect(await hold(0, new AbortController().signal, manualClock(0))).toBe(true)
})
