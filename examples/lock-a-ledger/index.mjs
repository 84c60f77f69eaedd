import { redisLock } from 'fluxgate/lock'

// Something outside of Redis that remembers the newest fence it has seen, as a column of a table would.
const ledger = {
  lines: [],
  fence: 0,
  write(line, fence) {
    if (fence < this.fence) throw new Error(`"${line}" comes too late: somebody newer has written`)
    this.fence = fence
    this.lines.push(line)
  },
}

const lock = redisLock(process.env.REDIS_URI ?? 'redis://127.0.0.1:6379')

// One takes the lock for a short while and falls asleep.
const sleepy = await lock.acquire('ledger', { ttlMs: 200, watchdog: false })
// The other waits until the lease has ended, and writes.
await lock.using('ledger', { waitMs: 5_000 }, (_signal, { fence }) => ledger.write('second holder', fence))

console.log('the first one still holds it:', sleepy.isHeld)
try {
  ledger.write('first holder', sleepy.fence)
} catch (error) {
  console.log(error.message)
}
console.log(ledger.lines)
await lock.close()
