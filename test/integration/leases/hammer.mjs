// Charges a leased bucket as fast as it can from `go` to `stop`, and on until it has spent `fromMemoryAtLeast` permits
// from memory; then it closes and reports what was admitted. With `hold` it charges until it holds some permits, reports how many,
// and blocks, so that it can be killed in that state. With `holdAndStop` it closes instead.
import { setImmediate } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { connectionOf } from '../../../dist/redis/client/connection-of.js'
import { leased } from '../../../dist/stores/leased/leased.js'
import { RedisBuckets } from '../../../dist/stores/redis/redis-buckets.js'

const { port, prefix, group, leaseShare, callers, isTimed, fromMemoryAtLeast } = JSON.parse(process.argv[2])
const client = new Redis(port)
const store = leased(new RedisBuckets(connectionOf(client), { prefix }), { leaseShare })
const demands = [{ group, key: 'a', permits: 1, maxWaitTicks: 0, policy: 'REJECT', shadow: false }]

let isStopped = false
let admitted = 0
let fromMemory = 0
let most = 0
/** Admitted permits by tick of the store. */
const admissions = new Map()

async function callForever() {
  while (!isStopped || fromMemory < fromMemoryAtLeast) {
    const { granted, now, fromCache } = await store.charge(demands, false)
    if (!granted) continue
    admitted += 1
    // A decision from memory does not yield to the event loop.
    if (admitted % 100 === 0) await setImmediate()
    if (isTimed) admissions.set(now, (admissions.get(now) ?? 0) + 1)
    if (fromCache) fromMemory += 1
    if (fromCache && admitted % 64 === 0) most = Math.max(most, store.heldPermits)
  }
}

async function hold() {
  do {
    await store.charge(demands, false)
    admitted += 1
    // A decision from memory does not yield to the event loop.
    if (admitted % 100 === 0) await setImmediate()
  } while (store.heldPermits < 10)
}

const stopHere = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)

let calling
process.on('message', async (order) => {
  if (order === 'go') {
    calling = Promise.all(Array.from({ length: callers }, callForever))
    return
  }
  if (order !== 'stop') await hold()
  if (order === 'hold') {
    process.send({ admitted, held: store.heldPermits }, stopHere)
    return
  }
  isStopped = true
  await calling
  await store.close()
  client.disconnect()
  process.send({ admitted, fromMemory, most, held: store.heldPermits, admissions: [...admissions] })
  process.disconnect()
})
await client.ping()
process.send('ready')
