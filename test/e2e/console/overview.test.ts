import { describe, expect, it } from 'vitest'
import { type ConsolePage, expectAccessible, useBrowser } from './browser.js'
import { openShop } from './shop.js'

const open = useBrowser()

describe('the overview', () => {
  it.each(['dark', 'light'] as const)(
    'shows rates, rejections as sentences, keys and health (%s theme)',
    async (theme) => {
      const shop = await openShop()
      await shop.traffic()
      const page = await open(shop.console, { theme })
      await page.getByText('login · per-hour · 5 of 5 used, retry in').first().waitFor()
      const keys = page.getByRole('region', { name: 'Most rejected keys' })
      await keys.getByText('203.0.113.7').waitFor()
      await keys.getByText('of 7').waitFor()
      await page.getByText('Bucket store').waitFor()
      const row = page.getByRole('row', { name: /^login shop 5 2/ })
      await row.waitFor()
      await page.getByRole('img', { name: 'Decisions per second' }).waitFor()
      expect(await page.evaluate('document.documentElement.dataset.theme')).toBe(theme)
      await expectAccessible(page)
      expect(page.problems).toEqual([])
      expect([...page.hosts]).toEqual([new URL(shop.url).host])
    },
  )

  it('shows a rejection as it happens, without a reload', async () => {
    const shop = await openShop()
    const page = await open(shop.console)
    await page.getByText('Live', { exact: true }).waitFor()
    await page.getByText('Nothing was rejected recently.').waitFor()
    await shop.traffic()
    await page.getByText('login · per-hour · 5 of 5 used, retry in').first().waitFor()
  })

  it('fits on a phone, even with IDs of the greatest length', async () => {
    const id = (letter: string) => `${letter.repeat(50)}-`.repeat(3).slice(0, 128)
    const bands = [{ label: 'per-hour', capacity: 1, window: '1h' }]
    const shop = await openShop({ rules: { ruleSets: [{ id: id('s'), rules: [{ id: id('r'), bands }] }] } })
    for (let i = 0; i < 3; i++) await shop.check({ ruleSetId: id('s'), clientIp: '2001:db8:1234:5600::1' })
    const page = await open(shop.console, { width: 375 })
    await page.getByRole('row', { name: new RegExp(`^${id('r')}`) }).waitFor()
    await page.getByRole('option', { name: id('r') }).waitFor({ state: 'attached' })
    await expectAccessible(page)
    for (const hash of [
      '#/rules',
      `#/rules/${id('s')}/${id('r')}`,
      '#/keys',
      '#/keys?key=2001:db8:1234:5600::/56',
      '#/candidates',
    ]) {
      await page.goto(shop.console + hash)
      await page
        .getByText(/[rs]{50}/)
        .first()
        .waitFor({ state: 'attached' })
      await expectAccessible(page)
    }
  })

  it('loads at most 150 KB of compressed scripts', async () => {
    const shop = await openShop()
    const page = await open(shop.console)
    await page.getByText('Bucket store').waitFor()
    const sizes = (await page.evaluate(
      `performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('.js')).map((it) => it.encodedBodySize)`,
    )) as number[]
    expect(sizes.length).toBeGreaterThan(1)
    expect(Math.min(...sizes)).toBeGreaterThan(0)
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(150 * 1024)
  })

  it('says that the server does not respond, and recovers by itself', async () => {
    const shop = await openShop()
    const page = await open(shop.console)
    await page.getByText('Live', { exact: true }).waitFor()
    await shop.stop()
    await page.getByText('The server does not respond. The page reconnects by itself').waitFor()
    await shop.restart()
    await page.getByText('Live', { exact: true }).waitFor()
    await page.getByText('The server does not respond. The page reconnects by itself').waitFor({ state: 'detached' })
    await shop.traffic()
    await page.getByText('login · per-hour · 5 of 5 used, retry in').first().waitFor()
  })

  it('works in many tabs, because a hidden one holds no connection, and is live again when it is shown', async () => {
    const shop = await openShop()
    const show = (page: ConsolePage, isShown: boolean) =>
      page.evaluate(`
        Object.defineProperty(document, 'hidden', { configurable: true, value: ${!isShown} })
        document.dispatchEvent(new Event('visibilitychange'))`)
    const pages: ConsolePage[] = []
    // Chromium opens six connections to a host.
    for (let tab = 0; tab < 8; tab++) {
      for (const page of pages.slice(-1)) await show(page, false)
      const page = await open(shop.console)
      await page.getByText('Live', { exact: true }).waitFor()
      await page.getByText('Nothing was rejected recently.').waitFor()
      pages.push(page)
    }
    const [first] = pages as [ConsolePage, ...ConsolePage[]]
    await first.getByText('Connecting', { exact: true }).waitFor()
    await show(first, true)
    await first.getByText('Live', { exact: true }).waitFor()
    await shop.traffic()
    await first.getByText('login · per-hour · 5 of 5 used, retry in').first().waitFor()
    for (const page of pages) await page.close()
  })

  it('fits a phone, in Korean too', async () => {
    const shop = await openShop()
    await shop.traffic()
    const page = await open(shop.console, { width: 375, height: 740, language: 'ko' })
    await page.getByRole('heading', { name: '최근 거부' }).waitFor()
    await expectAccessible(page)
  })
})

describe('the token', () => {
  const token = 'correct-horse-battery'

  it('is asked for, verified, kept in the tab only and sent in a header only', async () => {
    const shop = await openShop({ token })
    const page = await open(shop.console)
    await page.getByLabel('Admin token').fill('wrong')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('The server rejected this token.').waitFor()
    await expectAccessible(page)
    await page.getByLabel('Admin token').fill(token)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    expect(await page.evaluate('JSON.stringify(localStorage)')).not.toContain(token)
    expect(page.url()).not.toContain(token)
    expect(await page.evaluate('document.cookie')).toBe('')
    await page.reload()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Admin token').waitFor()
    expect(await page.evaluate('JSON.stringify(sessionStorage)')).not.toContain(token)
    expect(page.problems).toEqual([])
  })
})
