// @ts-check
/**
 * Simulates a deployment in virtual time: decisions arrive at random, occupy a process, wait for its next call, and queue at a
 * Redis primary. It shares only the costs and the numbers of machines with the model. The same seed gives the same result on
 * every machine.
 *
 * @typedef {object} Outcome
 * @property {number} processUtilisation
 * @property {number} redisUtilisation of the busiest primary
 * @property {number} meanUs
 * @property {number} p99Us
 */
import { seededRandom } from '../../dist/core/seeded-random.js'
import { quantile } from '../measure.mjs'
import { longestTurn, sharesOf, shortestTurn } from './model.mjs'

/** The first part of the time fills the queues and is not counted. */
const warmUp = 0.1

/**
 * @param {import('./model.mjs').Demand} demand
 * @param {import('./model.mjs').Assumptions} assumptions
 * @param {{ processes: number, primaries: number }} machines
 * @param {{ decisions?: number, seed?: number }} [options]
 * @returns {Outcome}
 */
export function simulate(demand, assumptions, { processes, primaries }, { decisions = 300_000, seed = 1 } = {}) {
  const { perSecond, cost, leaseSize } = demand
  const { skew, turnUs, networkUs } = assumptions
  const random = seededRandom(seed)
  const endUs = (decisions / perSecond) * 1e6
  const fromUs = endUs * warmUp
  const shares = sharesOf(primaries, primaries === 1 ? 1 : skew)
  const busyUs = { processes: 0, redis: shares.map(() => 0) }
  /** @type {number[]} */
  const times = []
  /** @type {{ at: number, primary: number, starts: number[] }[]} */
  const calls = []
  for (let process = 0; process < processes; process++) {
    const meanGapUs = (1e6 * processes) / perSecond
    const nextCall = callTimes(turnUs, random, shares.length)
    /** @type {({ at: number, primary: number, starts: number[] } | undefined)[]} */
    const latest = []
    let freeAt = 0
    let untilRenewal = leaseSize === undefined ? 0 : Math.ceil(random() * leaseSize)
    for (let at = exponential(meanGapUs, random); at < endUs; at += exponential(meanGapUs, random)) {
      freeAt = Math.max(freeAt, at) + cost.processUs
      if (at >= fromUs) busyUs.processes += cost.processUs
      const primary = pick(shares, random())
      if (leaseSize === undefined) {
        const arrivesAt = nextCall(primary, freeAt) + networkUs / 2
        let call = latest[primary]
        if (call?.at !== arrivesAt) {
          call = { at: arrivesAt, primary, starts: [] }
          latest[primary] = call
          calls.push(call)
        }
        call.starts.push(at)
      } else {
        if (at >= fromUs) times.push(freeAt - at)
        // One call renews a lease. Its cost is that of all decisions of the lease.
        if (--untilRenewal > 0) continue
        untilRenewal = leaseSize
        calls.push({ at: freeAt + networkUs / 2, primary, starts: Array.from({ length: leaseSize }, () => at) })
      }
    }
  }
  const freeAt = shares.map(() => 0)
  for (const { at, primary, starts } of calls.sort((a, b) => a.at - b.at)) {
    const service = starts.length * cost.redisUs
    const done = Math.max(freeAt[primary] ?? 0, at) + service
    freeAt[primary] = done
    if (at >= fromUs) busyUs.redis[primary] = (busyUs.redis[primary] ?? 0) + service
    if (leaseSize === undefined && at >= fromUs) for (const start of starts) times.push(done + networkUs / 2 - start)
  }
  const counted = endUs - fromUs
  return {
    processUtilisation: busyUs.processes / processes / counted,
    redisUtilisation: Math.max(...busyUs.redis) / counted,
    meanUs: times.reduce((sum, time) => sum + time, 0) / times.length,
    p99Us: quantile(times, 0.99),
  }
}

const exponential = (/** @type {number} */ mean, /** @type {() => number} */ random) => -mean * Math.log(1 - random())

/** Returns the index of a primary. */
function pick(/** @type {readonly number[]} */ shares, /** @type {number} */ at) {
  let sum = 0
  for (const [index, share] of shares.entries()) {
    sum += share
    if (at < sum) return index
  }
  return shares.length - 1
}

/**
 * Returns a function that returns the time of the first call of a process to a primary at or after a time. Calls to different
 * primaries are independent. Times must not decrease.
 */
function callTimes(/** @type {number} */ meanUs, /** @type {() => number} */ random, /** @type {number} */ primaries) {
  const interval = () => meanUs * (shortestTurn + (longestTurn - shortestTurn) * random())
  const next = Array.from({ length: primaries }, () => random() * meanUs)
  return (/** @type {number} */ primary, /** @type {number} */ from) => {
    let at = next[primary] ?? 0
    while (at < from) at += interval()
    next[primary] = at
    return at
  }
}
