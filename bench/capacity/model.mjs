// @ts-check
/**
 * A model of a deployment: measured costs in, numbers of processes and Redis primaries out, with utilisation and mean latency.
 * `simulate.mjs` simulates the same deployment, and a test compares the two.
 *
 * @typedef {{ processUs: number, redisUs: number }} DecisionCost CPU time of a decision in microseconds
 *
 * @typedef {object} Costs measured by `npm run bench -- growth`
 * @property {string} date
 * @property {string} machine
 * @property {DecisionCost} exact
 * @property {DecisionCost} exactThreeBands
 * @property {DecisionCost} leased
 * @property {number} gatewayUs CPU time of the gateway per request, with the limit in memory
 * @property {number} bytesPerKey
 *
 * @typedef {object} Demand
 * @property {number} perSecond decisions
 * @property {DecisionCost} cost
 * @property {number} [leaseSize] decisions per lease. Default: none; every decision calls Redis
 *
 * @typedef {object} Assumptions
 * @property {number} utilisation of processes and primaries that is planned, from 0 to 1
 * @property {number} skew load of the busiest primary relative to an equal share
 * @property {number} turnUs mean time between two calls of a process to the same primary
 * @property {number} networkUs round trip between process and primary
 *
 * @typedef {object} Plan
 * @property {number} processes
 * @property {number} primaries
 * @property {number} processUtilisation
 * @property {number} redisUtilisation of the busiest primary
 * @property {number} meanUs mean time of a decision
 */

/** @type {Assumptions} */
export const assumptions = { utilisation: 0.6, skew: 1.1, turnUs: 500, networkUs: 500 }

/**
 * Intervals between two calls vary from half to one and a half times the mean. A decision that arrives at a random time waits
 * E[T²] / 2E[T] for the next call.
 */
export const shortestTurn = 0.5
export const longestTurn = 1.5
const meanWaitForTurn = (1 + (longestTurn - shortestTurn) ** 2 / 12) / 2

/** @type {(demand: Demand, assumptions: Assumptions) => Plan} */
export function plan({ perSecond, cost, leaseSize }, { utilisation, skew, turnUs, networkUs }) {
  const perUs = perSecond / 1e6
  const processes = Math.max(1, Math.ceil((perUs * cost.processUs) / utilisation))
  const enough = Math.ceil((perUs * cost.redisUs) / utilisation)
  const primaries = enough <= 1 ? 1 : Math.ceil((perUs * cost.redisUs * skew) / utilisation)
  const processUtilisation = (perUs * cost.processUs) / processes
  const busiest = primaries === 1 ? 1 : skew
  const redisUtilisation = (perUs * cost.redisUs * busiest) / primaries
  const inProcess = queueTime(processUtilisation, cost.processUs)
  // A lease is renewed in advance, so decisions do not wait for it.
  if (leaseSize !== undefined) return { processes, primaries, processUtilisation, redisUtilisation, meanUs: inProcess }
  const meanRedis = redisTime({ perUs, cost, processes, primaries, turnUs, busiest })
  const meanUs = inProcess + meanWaitForTurn * turnUs + networkUs + meanRedis
  return { processes, primaries, processUtilisation, redisUtilisation, meanUs }
}

/** Mean time in an M/D/1 queue, including the service. */
const queueTime = (/** @type {number} */ load, /** @type {number} */ service) =>
  service + (load * service) / (2 * (1 - load))

/**
 * Mean time of a decision at a primary: an M/G/1 queue of calls. A call contains the decisions of one turn of a process, whose
 * number has a Poisson distribution. All decisions of a call complete together.
 *
 * @param {{ perUs: number, cost: DecisionCost, processes: number, primaries: number, turnUs: number, busiest: number }} load
 */
function redisTime({ perUs, cost, processes, primaries, turnUs, busiest }) {
  const shares = sharesOf(primaries, busiest)
  let mean = 0
  for (const share of shares) {
    const perCall = (perUs * share * turnUs) / processes
    const load = perUs * share * cost.redisUs
    const wait = (load * cost.redisUs * (1 + perCall)) / (2 * (1 - load))
    mean += share * (wait + (1 + perCall) * cost.redisUs)
  }
  return mean
}

/** Returns the share of the decisions of each primary: one is busier than the others, which share the rest equally. */
export function sharesOf(/** @type {number} */ primaries, /** @type {number} */ busiest) {
  if (primaries === 1) return [1]
  const most = busiest / primaries
  return [most, ...Array.from({ length: primaries - 1 }, () => (1 - most) / (primaries - 1))]
}
