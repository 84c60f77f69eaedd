import { describe, it } from 'vitest'
import { compareReservations } from '../../testing/reservations/histories.js'
import { memoryStore } from './memory-store.js'

const histories = Number(process.env.FLUXGATE_TEST_HISTORIES ?? 150)
const first = Number(process.env.FLUXGATE_TEST_SEED ?? Date.now() % 1e9)

describe('reservations in memory', () => {
  it(`equal the reference models over random histories (seed ${first})`, async () => {
    for (let seed = first; seed < first + histories; seed++)
      await compareReservations((clock) => memoryStore({ clock }), {
        seed,
        steps: 100,
        maxCapacity: seed % 3 === 0 ? 1e9 : 20,
        isDense: seed % 2 === 0,
      })
  })
})
