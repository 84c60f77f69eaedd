import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { useBrowser } from './browser.js'
import { openShop } from './shop.js'

const open = useBrowser()
const probe = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'

const rules = {
  ruleSets: [
    {
      id: 'shop',
      description: probe,
      rules: [
        {
          id: 'login',
          name: probe,
          description: probe,
          path: '/login',
          limitScope: 'USER_ID',
          overrides: true,
          bands: [{ label: 'per-hour', capacity: 5, window: '1h' }],
        },
        { id: 'partners', when: { 'header.x-app': 'ios' }, bands: [{ capacity: 5, window: '1h' }] },
      ],
    },
  ],
}

it('shows markup in names, keys, paths, headers, notes and log files as text', async () => {
  const shop = await openShop({ rules })
  for (let i = 0; i < 7; i++) await shop.check({ path: '/login', userId: probe, method: 'POST' })
  for (let i = 0; i < 7; i++) await shop.check({ path: '/login', userId: 'u', method: probe.slice(0, 20) })
  const override = await fetch(`${shop.url}/api/rule-sets/shop/rules/login/overrides/${encodeURIComponent(probe)}`, {
    method: 'PUT',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ action: 'DENY', note: `note ${probe}` }),
  })
  expect(override.status).toBe(201)
  const page = await open(shop.console)
  const seen = (text: string) => page.getByText(text, { exact: false }).first().waitFor()
  const visit = (hash: string) => page.goto(`${shop.console}${hash}`)
  await seen(probe)
  await visit('#/rules')
  await seen(probe)
  await visit('#/rules/shop/login')
  await page.getByRole('heading', { name: probe }).waitFor()
  await page.getByLabel('Capacity').fill('3')
  await page.getByRole('button', { name: 'Try as candidate' }).click()
  await page.getByRole('heading', { name: 'Candidate of shop' }).waitFor()
  await shop.check({ path: '/login', userId: probe, method: 'POST' })
  await page.getByRole('link', { name: probe }).first().waitFor()
  await visit(`#/keys?key=${encodeURIComponent(probe)}&set=shop&rule=login`)
  await seen(`note ${probe}`)

  await visit('#/try')
  await page.getByLabel('Path').fill(`/${probe}`)
  await page.getByLabel('User ID').fill(probe)
  await page.getByLabel('Headers').fill(`x-app: ${probe}`)
  await page.getByRole('button', { name: 'Explain' }).click()
  await seen(`header.x-app: expected ios, received ${probe}`)
  await page.getByText(/path: expected \/login, received/).waitFor()

  const folder = mkdtempSync(join(tmpdir(), 'fluxgate-log-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const log = join(folder, `<img src=x onerror=window.hacked=1>.log`)
  const line = (second: number) =>
    JSON.stringify({
      time: `2026-11-18T10:00:${String(second).padStart(2, '0')}Z`,
      user: probe,
      path: '/login',
      x: probe,
    })
  writeFileSync(log, [...Array.from({ length: 30 }, (_, i) => line(i)), probe].join('\n'))
  await visit('#/whatif')
  await page.locator('input[type=file]').setInputFiles(log)
  await seen('<img src=x onerror=window.hacked=1>.log')
  const text = page.getByRole('textbox', { name: 'Changed rules' })
  await text.fill((await text.inputValue()).replace('capacity: 5', 'capacity: 2'))
  await page.getByRole('button', { name: 'Compare' }).click()
  await page.getByRole('cell', { name: probe }).waitFor()

  expect(await page.evaluate('window.hacked')).toBeUndefined()
  expect(page.problems).toEqual([])
})
