import express from 'express'
import { createFluxGate } from 'fluxgate-js'
import { rateLimit } from 'fluxgate-js/express'

const customers = new Map([
  ['key-of-ann', { id: 'ann', plan: 'free' }],
  ['key-of-bob', { id: 'bob', plan: 'pro' }],
])

// `strategy: first` applies one rule: the one of the plan, or the last for plans that have none.
const gate = await createFluxGate({
  rules: {
    id: 'plans',
    strategy: 'first',
    rules: [
      {
        id: 'pro',
        priority: 1,
        when: { 'attributes.plan': 'pro' },
        limitScope: 'USER_ID',
        overrides: true,
        bands: [
          { label: 'minute', capacity: 10, window: '1m' },
          { label: 'month', capacity: 10_000, algorithm: 'FIXED_WINDOW', calendar: 'MONTH' },
        ],
      },
      {
        id: 'free',
        limitScope: 'USER_ID',
        bands: [
          { label: 'minute', capacity: 3, window: '1m' },
          { label: 'day', capacity: 100, algorithm: 'FIXED_WINDOW', calendar: 'DAY' },
        ],
      },
    ],
  },
})

// A single customer has a higher limit than the plan.
await gate.overrides.put('plans', 'pro', { key: 'carol', action: 'LIMIT', bands: [{ capacity: 50, window: '1m' }] })
customers.set('key-of-carol', { id: 'carol', plan: 'pro' })

function authenticate(request, response, next) {
  request.customer = customers.get(request.get('X-API-Key'))
  if (request.customer === undefined) response.status(401).send('Unknown API key.\n')
  else next()
}

const limit = rateLimit({
  gate,
  customize: (context, { customer }) => ({ ...context, userId: customer.id, attributes: { plan: customer.plan } }),
})

const app = express()
app.use(authenticate, limit)
app.get('/', (request, response) => response.send(`${request.rateLimit.ruleId}: ${request.rateLimit.remaining} left\n`))

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}`)
})

process.once('SIGTERM', () => server.close(() => gate.close()))
