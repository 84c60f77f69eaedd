import { redisLock } from 'fluxgate-js/lock'

// Data outside Redis that stores the highest fencing token it has seen, like a column of a table.
const ledger = {
  lines: [],
  fence: 0,
  write(line, fence) {
    if (fence < this.fence) throw new Error(`stale write "${line}": a newer holder has written`)
    this.fence = fence
    this.lines.push(line)
  },
}

const lock = redisLock(process.env.REDIS_URI ?? 'redis://127.0.0.1:6379')

// The first holder gets a short lease and pauses.
const first = await lock.acquire('ledger', { ttlMs: 200, watchdog: false })
// The second holder waits until the lease has expired, then writes.
await lock.using('ledger', { waitMs: 5_000 }, (_signal, { fence }) => ledger.write('second holder', fence))

console.log('first holder still holds the lock:', first.isHeld)
try {
  ledger.write('first holder', first.fence)
} catch (error) {
  console.log(error.message)
}
console.log('ledger:', ledger.lines.join(', '))
await lock.close()
