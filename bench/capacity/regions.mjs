// @ts-check
/**
 * A global limit that is split over regions, each with its own Redis. The model predicts the allowed requests; the simulation
 * uses one real limiter per region with a manual clock.
 *
 * @typedef {object} Region
 * @property {string} name
 * @property {number} share of the global limit, from 0 to 1
 * @property {number} demand requests per second
 *
 * @typedef {object} Allowed
 * @property {number} perSecond allowed in all regions
 * @property {number} unused permits per second that remain in one region while another rejects
 * @property {number} most allowed in any window
 */
import { seededRandom } from '../../dist/core/seeded-random.js'
import { createLimiter } from '../fluxgate.mjs'

/** A boundary of a window. */
const startMs = 1_800_000_000_000

/** A region allows its demand up to its share. @type {(limit: number, regions: readonly Region[]) => Pick<Allowed, 'perSecond' | 'unused'>} */
export function splitQuota(limit, regions) {
  const perSecond = regions.reduce((sum, { share, demand }) => sum + Math.min(demand, share * limit), 0)
  const wanted = regions.reduce((sum, { demand }) => sum + demand, 0)
  return { perSecond, unused: Math.min(limit, wanted) - perSecond }
}

/** @type {(limit: number, regions: readonly Region[], seconds?: number, seed?: number) => Promise<Allowed>} */
export async function simulateRegions(limit, regions, seconds = 30, seed = 1) {
  const random = seededRandom(seed)
  let nowMs = startMs
  const limiters = regions.map(({ share }) =>
    createLimiter({
      algorithm: 'FIXED_WINDOW',
      capacity: Math.floor(share * limit),
      window: '1s',
      clock: { now: () => nowMs },
    }),
  )
  const allowed = Array.from({ length: seconds }, () => 0)
  const wanted = regions.reduce((sum, { demand }) => sum + demand, 0)
  for (let at = 0; at < seconds * 1e6; at += (-1e6 / wanted) * Math.log(1 - random())) {
    nowMs = startMs + at / 1000
    let place = random() * wanted
    const index = regions.findIndex(({ demand }) => {
      place -= demand
      return place < 0
    })
    const second = Math.floor(at / 1e6)
    if (limiters[index]?.consumeSync('global').allowed) allowed[second] = (allowed[second] ?? 0) + 1
  }
  for (const limiter of limiters) await limiter.close()
  const perSecond = allowed.reduce((sum, count) => sum + count, 0) / seconds
  return { perSecond, unused: Math.min(limit, wanted) - perSecond, most: Math.max(...allowed) }
}
