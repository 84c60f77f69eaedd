import { createLimiter } from 'fluxgate-js'

// At most two reports are generated at the same time. Others wait for up to five seconds.
const limiter = createLimiter({
  algorithm: 'CONCURRENCY',
  capacity: 2,
  maxHold: '30s',
  onLimitExceed: 'WAIT_FOR_REFILL',
  maxWaitMs: 5_000,
})

let inProgress = 0

async function report(name) {
  const { ran } = await limiter.run('reports', async () => {
    inProgress += 1
    console.log(`${name}: started, ${inProgress} in progress`)
    await new Promise((resolve) => setTimeout(resolve, 50))
    inProgress -= 1
  })
  if (!ran) console.log(`${name}: rejected`)
}

await Promise.all(['January', 'February', 'March', 'April', 'May'].map(report))
await limiter.close()
