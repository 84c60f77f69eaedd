/** A running server with the rules of a shop, and traffic for it. */
import { tempWorkspace } from '../running-program.js'

export const shopRules = {
  ruleSets: [
    {
      id: 'shop',
      description: 'Public API of the shop',
      rules: [
        {
          id: 'reads',
          name: 'Read requests',
          path: '/api/**',
          method: 'GET',
          overrides: true,
          bands: [
            { label: 'per-second', capacity: 20, window: '1s' },
            { label: 'per-minute', capacity: 600, window: '1m' },
          ],
        },
        {
          id: 'login',
          name: 'Login attempts',
          path: '/login',
          method: 'POST',
          priority: 10,
          overrides: true,
          ban: { after: 100, within: '1m', for: '15m', max: '1d' },
          bands: [{ label: 'per-hour', capacity: 5, window: '1h' }],
        },
        {
          id: 'search',
          path: '/search',
          mode: 'SHADOW',
          bands: [{ label: 'per-hour', capacity: 2, window: '1h' }],
        },
      ],
    },
  ],
}

export interface Shop {
  readonly url: string
  readonly console: string
  readonly rulesFile: string
  check(request: object): Promise<{ readonly allowed: boolean }>
  /** Seven login attempts: five are allowed and two rejected. Three searches: a shadow rejection. */
  traffic(): Promise<void>
  stop(): Promise<void>
  /** Starts the server again, on the same port. */
  restart(): Promise<void>
}

export async function openShop({ token = '', rules = shopRules as object, redis = '' } = {}): Promise<Shop> {
  const workspace = tempWorkspace()
  workspace.write('rules.yaml', rules)
  const env = {
    FLUXGATE_SERVER_REVEAL_KEYS: 'true',
    ...(token && { FLUXGATE_ADMIN_TOKEN: token }),
    ...(redis && { FLUXGATE_REDIS_URI: redis }),
  }
  let running = await workspace.start(['serve', '--port', '0'], env)
  const url = running.api
  const check: Shop['check'] = async (request) => {
    const response = await fetch(`${url}/api/ratelimit/check`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...(token && { Authorization: `Bearer ${token}` }) },
      body: JSON.stringify({ ruleSetId: 'shop', ...request }),
    })
    return (await response.json()) as { allowed: boolean }
  }
  return {
    url,
    console: `${url}/console`,
    rulesFile: workspace.file('rules.yaml'),
    check,
    async traffic() {
      for (let i = 0; i < 7; i++) await check({ method: 'POST', path: '/login', clientIp: '203.0.113.7' })
      for (let i = 0; i < 3; i++) await check({ method: 'GET', path: '/search', clientIp: '203.0.113.7' })
    },
    async stop() {
      running.process.kill('SIGTERM')
      await running.ended
    },
    async restart() {
      running = await workspace.start(['serve', '--port', new URL(url).port], env)
    },
  }
}
