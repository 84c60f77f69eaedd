import { expect, it } from 'vitest'
import { RegularPauses } from './pacing.js'

it('requires a pause after every 6 ms of work', async () => {
  let now = 0
  const pauses = new RegularPauses(() => now)
  now = 5.9
  expect(pauses.due()).toBeUndefined()
  now = 6
  const pause = pauses.due()
  expect(pause).toBeInstanceOf(Promise)
  now = 8
  await pause
  now = 13.9
  expect(pauses.due()).toBeUndefined()
  now = 14
  expect(pauses.due()).toBeInstanceOf(Promise)
})
