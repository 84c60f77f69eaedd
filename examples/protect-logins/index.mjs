import express from 'express'
import { rateLimit } from 'fluxgate-js/express'

const passwords = new Map([
  ['ann@example.com', 'correct horse'],
  ['bob@example.com', 'battery staple'],
])

// Failed logins and rejected ones count; the charge of a successful login is refunded.
const countWhen = ({ status }) => status >= 400

// Against one address that tries many accounts. If it continues after its tenth failure, it is banned.
const perAddress = rateLimit({
  id: 'failures-of-address',
  algorithm: 'SLIDING_WINDOW_LOG',
  capacity: 10,
  window: '15m',
  countWhen,
  ban: { after: 3, within: '15m', for: '1h', factor: 2, max: '1d' },
})

// Against many addresses that try one account.
const perAccount = rateLimit({
  id: 'failures-of-account',
  algorithm: 'SLIDING_WINDOW_LOG',
  capacity: 5,
  window: '15m',
  countWhen,
  key: (request) => accountOf(request.body),
  onMissingKey: 'SKIP',
})

// "Ann@Example.com " and "ann@example.com" are the same account.
const accountOf = (body) => (typeof body?.email === 'string' ? body.email.trim().toLowerCase() : undefined)

const app = express()
app.post('/login', perAddress, express.json(), perAccount, (request, response) => {
  const account = accountOf(request.body)
  const isRight = account !== undefined && passwords.get(account) === request.body.password
  response.status(isRight ? 200 : 401).send(isRight ? 'Welcome.\n' : 'Wrong email or password.\n')
})

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}`)
})

process.once('SIGTERM', () => server.close())
