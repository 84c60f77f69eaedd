/** Works under a concurrency limit until it is stopped, and prints every moment at which too much work was in progress. */
import { Redis } from 'ioredis'
import { createLimiter } from '../../../dist/index.js'
import { redisStore } from '../../../dist/redis.js'

const [uri, capacity, maxHold] = process.argv.slice(2)
const store = redisStore(uri, { timeoutMs: 20_000 })
const limiter = createLimiter({ algorithm: 'CONCURRENCY', capacity: Number(capacity), maxHold, store })
const redis = new Redis(uri)
let isStopping = false
let done = 0
process.on('SIGTERM', () => {
  isStopping = true
})

async function work(number) {
  while (!isStopping) {
    const { decision, release } = await limiter.acquire('shared')
    if (decision.degraded) console.log('degraded')
    if (decision.allowed) {
      const name = `${process.pid}:${number}`
      const inProgress = await redis.multi().sadd('in-progress', name).scard('in-progress').exec()
      if (inProgress[1][1] > Number(capacity)) console.log(`violation ${inProgress[1][1]}`)
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 60))
      await redis.srem('in-progress', name)
      if (!(await release())) console.log('expired')
      done += 1
    } else await new Promise((resolve) => setTimeout(resolve, Math.random() * 20))
  }
}

console.log('ready')
await Promise.all(Array.from({ length: 6 }, (_, number) => work(number)))
console.log(`done ${done}`)
await limiter.close()
await store.close()
redis.disconnect()
