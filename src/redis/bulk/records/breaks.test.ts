import { expect, it } from 'vitest'
import { Breaks } from './breaks.js'

it('requires a pause after every 6 ms of work', async () => {
  let now = 0
  const breaks = new Breaks(() => now)
  now = 5.9
  expect(breaks.due()).toBeUndefined()
  now = 6
  const rest = breaks.due()
  expect(rest).toBeInstanceOf(Promise)
  now = 8
  await rest
  now = 13.9
  expect(breaks.due()).toBeUndefined()
  now = 14
  expect(breaks.due()).toBeInstanceOf(Promise)
})
