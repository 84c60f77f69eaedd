import { once } from 'node:events'
import { createServer } from 'node:http'
import { createFluxGate } from 'fluxgate-js'
import { complete } from './model.mjs'

// 60 requests and 100,000 tokens per minute for each API key, decided together.
const limit = (id, capacity, fields) => ({ id, limitScope: 'API_KEY', bands: [{ capacity, window: '1m' }], ...fields })
const gate = await createFluxGate({
  rules: { id: 'llm', rules: [limit('requests', 60), limit('tokens', 100_000, { cost: 'tokens' })] },
  store: process.env.REDIS_URI ?? 'memory',
})

const server = createServer(async (request, response) => {
  const { prompt, maxTokens } = JSON.parse(Buffer.concat(await request.toArray()))
  const apiKey = request.headers['x-api-key']
  // The answer may have up to maxTokens. If this process dies, the estimate is refunded after five minutes.
  const estimate = { costs: { tokens: maxTokens }, ttlMs: 300_000, onExpire: 'REFUND' }
  const { decision, id } = await gate.reserve({ apiKey }, estimate)
  if (!decision.allowed) {
    const seconds = Math.ceil((decision.retryAfterMs ?? 60_000) / 1000)
    response.writeHead(429, { 'Retry-After': seconds }).end(decision.ruleId)
    return
  }
  let tokens = 0
  try {
    for await (const piece of complete(prompt, maxTokens)) {
      tokens += piece.tokens
      if (!response.write(piece.text)) await Promise.race([once(response, 'drain'), once(response, 'close')])
      // The client has left: no more tokens are produced, and only these are charged.
      if (response.destroyed) break
    }
    response.end()
  } finally {
    // Also after an error or an early end: the tokens that were produced are charged in place of the estimate.
    const settled = await gate.settle(id, { costs: { tokens } })
    const { remaining } = settled.decision.bands.find(({ ruleId }) => ruleId === 'tokens')
    console.log(`${apiKey}: reserved ${maxTokens}, used ${tokens}, about ${Math.floor(remaining / 1000)} thousand left`)
  }
})
server.listen(0)
await once(server, 'listening')

async function ask(apiKey, prompt, maxTokens) {
  const response = await fetch(`http://127.0.0.1:${server.address().port}`, {
    method: 'POST',
    headers: { 'X-API-Key': apiKey },
    body: JSON.stringify({ prompt, maxTokens }),
  })
  const text = await response.text()
  if (response.status === 429) console.log(`${apiKey}: ${maxTokens} rejected by the rule ${text}`)
}

await ask('team-a', '40 tokens', 90_000)
await ask('team-a', '55000 tokens', 60_000)
await ask('team-a', '100 tokens', 90_000)
await ask('team-a', '100 tokens', 40_000)
await ask('team-b', '100 tokens', 60_000)

server.close()
await gate.close()
