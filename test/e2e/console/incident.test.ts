import { expect, it } from 'vitest'
import { ownRedis } from '../../servers/own-redis.js'
import { useBrowser } from './browser.js'
import { openShop } from './shop.js'

const redis = await ownRedis()
const open = useBrowser()

it('shows the failure of Redis with its reason, keeps the charts over a reload, and marks the outage afterwards', async () => {
  const shop = await openShop({ redis: redis.uri })
  await shop.traffic()
  const page = await open(shop.console)
  const health = page.getByRole('region', { name: 'Health' })
  await health.getByText('Bucket store').waitFor()
  expect(await health.innerText()).toMatch(/Bucket store\s*Up/)
  await redis.kill()
  await health.getByText(/not connected to Redis|ECONNREFUSED/).waitFor()
  expect(await health.innerText()).toMatch(/Bucket store\s*Down\s*since \d\d:\d\d:\d\d/)
  expect(await shop.check({ method: 'GET', path: '/api/x', clientIp: '203.0.113.9' })).toMatchObject({ degraded: true })
  await health.getByText('Degraded decisions').waitFor()

  await page.reload()
  await page.getByRole('img', { name: 'Decisions per second' }).waitFor()
  await page.getByText(/Store failure\s+since \d\d:\d\d:\d\d/).waitFor()
  await health.getByText(/not connected to Redis|ECONNREFUSED/).waitFor()

  await redis.restart()
  await page.getByText(/Store failure\s+\d\d:\d\d:\d\d to \d\d:\d\d:\d\d/).waitFor()
  await health.getByText(/not connected to Redis|ECONNREFUSED/).waitFor({ state: 'detached' })
  expect(page.problems).toEqual([])
})
