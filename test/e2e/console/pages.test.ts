import { expect, it } from 'vitest'
import { expectAccessible, useBrowser } from './browser.js'
import { openShop } from './shop.js'

const open = useBrowser()

/** Other tests check the pages in the dark theme, in English and at 1280 px. */
it('shows its search fields completely on a phone', async () => {
  const shop = await openShop()
  for (const [hash, name] of [
    ['#/rules', 'Search by ID, name, path or method'],
    ['#/keys', 'Key or prefix, such as 203.0.113.7'],
  ]) {
    const page = await open(`${shop.console}${hash}`, { width: 375, height: 740 })
    await page.getByPlaceholder(name as string).waitFor()
    await expectAccessible(page)
  }
})

it('is accessible and fits a phone on every page, in the light theme and in Korean', async () => {
  const shop = await openShop()
  await shop.traffic()
  const page = await open(`${shop.console}#/rules`, { theme: 'light', width: 375, height: 740, language: 'ko' })
  const visit = async (hash: string, ready: string) => {
    await page.goto(`${shop.console}${hash}`)
    await page.locator('main').getByText(ready).filter({ visible: true }).first().waitFor()
    await expectAccessible(page)
  }
  await visit('#/rules', 'Login attempts')
  await visit('#/rules/shop/login', '규칙이 유효합니다.')
  await page.getByLabel('용량').fill('3')
  await page.getByRole('button', { name: '후보로 시험' }).click()
  await visit('#/candidates/shop', '현재 규칙과의 차이')
  const ban = await fetch(`${shop.url}/api/rule-sets/shop/rules/login/bans/198.51.100.1`, {
    method: 'PUT',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ for: '1h' }),
  })
  expect(ban.status).toBe(201)
  await visit('#/keys', '198.51.100.1')
  await visit('#/keys?key=203.0.113.7', 'per-hour')
  await page.goto(`${shop.console}#/try`)
  await page.getByLabel('메서드').fill('POST')
  await page.getByLabel('경로').fill('/login')
  await page.getByRole('button', { name: '판정 설명' }).click()
  await page.getByRole('img', { name: /per-hour/ }).waitFor()
  await expectAccessible(page)
  await visit('#/whatif', '규칙 집합이 유효합니다.')
  await visit('#/playground', 'TOKEN_BUCKET')
  expect(page.problems).toEqual([])
})
