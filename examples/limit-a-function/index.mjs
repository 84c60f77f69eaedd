import { createLimiter } from 'fluxgate-js'

// Three calls at once, then one every 100 ms: the limit of a third-party API.
const limiter = createLimiter({ capacity: 3, refillTokens: 1, window: '100ms' })

async function fetchPrice(item) {
  const { allowed, retryAfterMs } = await limiter.wait('price-api', { maxWaitMs: 1_000 })
  if (!allowed) throw new Error(`Too many calls. Retry in ${retryAfterMs} ms.`)
  return `${item} costs ${item.length}`
}

const startedAt = performance.now()
const items = ['pen', 'book', 'lamp', 'chair', 'table']

await Promise.all(
  items.map(async (item) => {
    const price = await fetchPrice(item)
    console.log(`${Math.round(performance.now() - startedAt)} ms: ${price}`)
  }),
)
await limiter.close()
