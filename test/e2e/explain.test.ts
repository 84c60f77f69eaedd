/** A client was rejected by the gateway. Its `RateLimit` header and its trace ID are enough to ask why. */
import { expect, it } from 'vitest'
import { tempWorkspace } from './running-program.js'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'

it('explains a rejection by the gateway from the response and the trace ID alone', async () => {
  const workspace = tempWorkspace()
  workspace.write('rules.yaml', {
    id: 'shop',
    rules: [
      { id: 'carts', path: '/cart', bands: [{ label: 'minute', capacity: 1, window: '1m' }] },
      { id: 'all', bands: [{ label: 'minute', capacity: 100, window: '1m' }] },
    ],
  })
  const running = await workspace.start(['start', '--port', '0', '--rules', 'rules.yaml'])
  const headers = { traceparent: `00-${traceId}-00f067aa0ba902b7-01` }
  const ask = (path: string) => fetch(`${running.url}${path}`, { headers })
  await ask('/cart')
  await fetch(`${running.url}/cart`)
  const rejected = await ask('/cart?secret=1')
  expect(rejected.status).toBe(429)

  const explain = async (...args: string[]) => {
    const asking = workspace.launch(['explain', '--server', running.api, ...args])
    return { status: await asking.ended, stdout: asking.stdout(), stderr: asking.stderr() }
  }
  const ratelimit = rejected.headers.get('ratelimit') as string
  const { status, stdout } = await explain('--ratelimit', ratelimit, '--trace-id', traceId, '--json')
  expect(status).toBe(0)
  const { policies, rejections } = JSON.parse(stdout) as { policies: object[]; rejections: object[] }
  expect(policies).toEqual([{ ruleSetId: 'shop', ruleId: 'carts', band: 'minute', limit: 1, windowMs: 60_000 }])
  expect(rejections).toEqual([
    expect.objectContaining({ ruleId: 'carts', band: 'minute', method: 'GET', path: '/cart', traceId }),
  ])
  // Either is enough; the header alone finds the rejection without a trace too.
  expect((await explain('--trace-id', traceId)).stdout).toContain('carts')
  const byHeader = JSON.parse((await explain('--ratelimit', ratelimit, '--json')).stdout) as { rejections: object[] }
  expect(byHeader.rejections).toHaveLength(2)
  expect((await explain('--trace-id', '0'.repeat(31))).status).toBe(1)
})
