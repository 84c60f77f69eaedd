/** The waiting room against a model that looks at all requests for every change. */
import { expect, it } from 'vitest'
import { WaitingRoom } from '../../src/core/waiting/waiting-room.js'
import { playHistory } from './play-history.js'
import { randomHistory } from './random-history.js'
import { WaitingRoomModel } from './waiting-room-model.js'

/** Fixed, so that a change cannot fail because of a defect that it did not cause. */
const seed = Number(process.env.FLUXGATE_TEST_SEED ?? 1)
const histories = Number(process.env.FLUXGATE_TEST_HISTORIES ?? 800)

it(`agrees with the model in every observable result over ${histories} histories (seed ${seed})`, async () => {
  for (let i = 0; i < histories; i++) {
    const history = randomHistory(seed + i)
    const expected = await playHistory(history, (most, clock) => new WaitingRoomModel(most, clock))
    const actual = await playHistory(history, (most, clock) => new WaitingRoom(most, clock))
    expect(actual, `seed ${seed + i}`).toEqual(expected)
  }
})
