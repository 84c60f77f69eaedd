// @ts-check
/**
 * Sizes of the measurements: of one run of a section. Every section runs several times, each time in a new process.
 *
 * @typedef {object} Effort
 * @property {number} keys number of keys in the tables with many keys
 * @property {number} operations per batch
 * @property {number} warmUps rounds before the measurement
 * @property {number} rounds
 * @property {number} memoryKeys
 * @property {RedisEffort} redis
 * @property {number} bulkRecords
 * @property {number} bulkRounds
 * @property {number} indexRecords records in the search index
 * @property {number} indexQueries queries of each kind
 * @property {{ seconds: number, warmUps: number, rounds: number }} http duration of a turn, and numbers of rounds
 * @property {import('../rule-sets/measure.mjs').Size} ruleSets
 * @property {number} replayLines lines of each access log
 * @property {FaultsEffort} faults
 * @property {boolean} install whether other services may be downloaded and built
 *
 * @typedef {object} FaultsEffort
 * @property {number} runs runs of each kind of cold start
 * @property {number} processes processes that start concurrently in a run
 * @property {number} busyLoops busy loops that run at the same time
 * @property {number} cuts number of measurements with a single lost connection
 * @property {number} cutSeconds duration of the measurement with repeatedly lost connections
 *
 * @typedef {object} RedisEffort
 * @property {number} keys
 * @property {number} seconds duration of a turn
 * @property {number} warmUps rounds before the measurement
 * @property {number} rounds
 * @property {number} watchSeconds duration of the measurements of decisions without Redis
 * @property {number} memoryKeys
 * @property {number} onceKeys keys that are requested exactly once
 * @property {readonly number[]} leaseProcesses numbers of processes that lease permits of the same keys
 */

/** @type {Effort} */
export const full = {
  keys: 100_000,
  operations: 100_000,
  warmUps: 4,
  rounds: 5,
  memoryKeys: 1_000_000,
  redis: {
    keys: 10_000,
    seconds: 0.4,
    warmUps: 2,
    rounds: 3,
    watchSeconds: 1,
    memoryKeys: 100_000,
    onceKeys: 100_000,
    leaseProcesses: [1, 2, 4, 8],
  },
  http: { seconds: 0.7, warmUps: 3, rounds: 3 },
  bulkRecords: 1_000_000,
  bulkRounds: 1,
  indexRecords: 1_000_000,
  indexQueries: 100,
  ruleSets: { rules: 12_000, manyRules: 100_000 },
  replayLines: 1_000_000,
  faults: { runs: 2, processes: 8, busyLoops: 0, cuts: 2, cutSeconds: 2 },
  install: true,
}

/** @type {Effort} */
export const quick = {
  keys: 5_000,
  operations: 5_000,
  warmUps: 1,
  rounds: 2,
  memoryKeys: 20_000,
  redis: {
    keys: 500,
    seconds: 0.05,
    warmUps: 0,
    rounds: 2,
    watchSeconds: 0.2,
    memoryKeys: 2_000,
    onceKeys: 2_000,
    leaseProcesses: [1, 2],
  },
  http: { seconds: 0.05, warmUps: 0, rounds: 2 },
  bulkRecords: 10_000,
  bulkRounds: 1,
  indexRecords: 3_000,
  indexQueries: 20,
  ruleSets: { rules: 50, manyRules: 200 },
  replayLines: 10_000,
  faults: { runs: 1, processes: 2, busyLoops: 0, cuts: 1, cutSeconds: 0.4 },
  install: false,
}
