import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { type ConsolePage, expectAccessible, useBrowser } from './browser.js'
import { openShop } from './shop.js'

const open = useBrowser()

const saveChange = async (page: ConsolePage): Promise<void> => {
  await page.getByRole('button', { name: 'Review and save' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Save', exact: true }).click()
}

describe('the rules page', () => {
  it('leads from a rejected request to a corrected, active rule without documentation', async () => {
    const shop = await openShop()
    await shop.traffic()
    const page = await open(shop.console)
    await page.getByText('login · per-hour · 5 of 5 used, retry in').first().click()
    await page.getByText('Each IP address may send 5 requests per hour to POST /login.').waitFor()
    await page.getByLabel('Capacity').fill('50')
    await page.getByText('Each IP address may send 50 requests per hour to POST /login.').waitFor()
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Review and save' }).click()
    await page.getByRole('dialog').getByText('capacity: 50').waitFor()
    await expectAccessible(page)
    await page.getByRole('dialog').getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByText('login was saved and is in effect.').waitFor()
    const login = { method: 'POST', path: '/login', clientIp: '203.0.113.7' }
    expect(await shop.check(login)).toMatchObject({ allowed: true, limit: 50 })
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByText('Each IP address may send 5 requests per hour to POST /login.').waitFor()
    expect(page.problems).toEqual([])
  })

  it('validates YAML as it is typed, with the messages of the server, and keeps form and YAML equal', async () => {
    const shop = await openShop()
    const page = await open(`${shop.console}#/rules/shop/login`)
    const yaml = page.getByRole('textbox', { name: 'YAML' })
    await yaml.fill('id: login\npath: /login\nbands:\n  - capacity: many\n    window: 1h\n')
    await page.getByText('bands[0].capacity').waitFor()
    expect(await page.getByRole('button', { name: 'Review and save' }).isDisabled()).toBe(true)
    await yaml.fill('id: login\npath: [')
    await page.getByText('The YAML is incomplete.').waitFor()
    await yaml.fill('id: login\npath: /signin\nbands:\n  - capacity: 7\n    window: 1h\n')
    expect(await page.getByLabel('Path').inputValue()).toBe('/signin')
    await page.getByText('The rule is valid.').waitFor()
  })

  it('replaces a calendar by the window that is typed', async () => {
    const shop = await openShop()
    const page = await open(`${shop.console}#/rules/shop/login`)
    const yaml = page.getByRole('textbox', { name: 'YAML' })
    await yaml.fill(
      'id: login\nalgorithm: FIXED_WINDOW\nbands:\n  - capacity: 7\n    calendar: MONTH\n    anchor: 15\n    timeZone: Asia/Seoul\n',
    )
    await page.getByText('per calendar month').first().waitFor()
    await page.getByRole('textbox', { name: 'Window', exact: true }).fill('2h')
    await page.getByText('per 2 hours').first().waitFor()
    await page.getByText('The rule is valid.').waitFor()
    expect(await yaml.inputValue()).not.toMatch(/calendar|anchor|timeZone/)
  })

  it('shows both versions to the second of two editors, and loses neither', async () => {
    const shop = await openShop()
    const first = await open(`${shop.console}#/rules/shop/login`)
    const second = await open(`${shop.console}#/rules/shop/login`)
    await first.getByLabel('Capacity').fill('6')
    await second.getByLabel('Capacity').fill('7')
    await saveChange(first)
    await first.getByText('login was saved and is in effect.').waitFor()
    await saveChange(second)
    const dialog = second.getByRole('dialog')
    await dialog.getByRole('heading', { name: 'The rule was changed in the meantime' }).waitFor()
    await dialog.getByText('capacity: 6').waitFor()
    await dialog.getByText('capacity: 7').waitFor()
    await expectAccessible(second)
    await dialog.getByRole('button', { name: 'Continue editing' }).click()
    expect(await second.getByLabel('Capacity').inputValue()).toBe('7')
    await saveChange(second)
    await second.getByText('login was saved and is in effect.').waitFor()
    expect(readFileSync(shop.rulesFile, 'utf8')).toMatch(/capacity"?: ?7\b/)
  })

  it('searches, disables with undo, and restores an earlier version from the history', async () => {
    const shop = await openShop()
    const page = await open(`${shop.console}#/rules`)
    await page.getByRole('switch', { name: 'Enable login' }).waitFor()
    await expectAccessible(page)
    await page.getByRole('searchbox').fill('search')
    await page.getByRole('switch', { name: 'Enable login' }).waitFor({ state: 'detached' })
    await page.getByRole('searchbox').fill('')
    await page.getByRole('switch', { name: 'Enable login' }).click()
    await page.getByText('login is disabled.').waitFor()
    const login = { method: 'POST', path: '/login', clientIp: '203.0.113.9' }
    expect(await shop.check(login)).toMatchObject({ reason: 'NO_RULE' })
    await page.getByRole('button', { name: 'History' }).click()
    await page.getByText(/by 127\.0\.0\.1/).waitFor()
    await page.getByRole('button', { name: 'Restore the version before' }).click()
    await page.getByText('login was restored and is in effect.').waitFor()
    expect(await shop.check(login)).toMatchObject({ reason: 'ALLOWED' })
  })

  it('duplicates a rule for a share of its keys, exports the set, and deletes the rule with undo', async () => {
    const shop = await openShop()
    await shop.traffic()
    const page = await open(`${shop.console}#/rules`)
    await page.getByText('2 rejected').waitFor()
    await page.getByText('1 would be rejected').waitFor()
    await page.getByRole('link', { name: 'Duplicate login' }).click()
    await page.getByLabel('ID', { exact: true }).fill('sign-up')
    await page.getByLabel('Path').fill('/sign-up')
    await page.getByLabel('Enforced keys (%)').fill('101')
    await page.getByText('must be a number from 0 to 100; received 101').first().waitFor()
    await page.getByLabel('Enforced keys (%)').fill('25')
    await saveChange(page)
    await page.getByText('sign-up was saved and is in effect.').waitFor()
    await page.goto(`${shop.console}#/rules`)
    await page.getByText('25 %', { exact: true }).waitFor()
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export' }).click(),
    ])
    expect(readFileSync(await download.path(), 'utf8')).toMatch(/id: sign-up.*enforcePercent: 25/s)
    await page.getByRole('button', { name: 'Delete sign-up' }).click()
    await page.getByText('25 %', { exact: true }).waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Undo' }).last().click()
    await page.getByText('25 %', { exact: true }).waitFor()
    expect(page.problems).toEqual([])
  })

  it('is edited and saved with the keyboard only', async () => {
    const shop = await openShop()
    const page = await open(`${shop.console}#/rules`)
    const tabTo = async (name: string): Promise<void> => {
      for (let i = 0; i < 80; i++) {
        await page.keyboard.press('Tab')
        const focused = 'document.activeElement.getAttribute("aria-label") || document.activeElement.innerText'
        if (String(await page.evaluate(focused)).trim() === name) return
      }
      throw new Error(`Tab does not reach ${name}.`)
    }
    await page.getByRole('link', { name: 'Edit login' }).waitFor()
    await tabTo('Edit login')
    await page.keyboard.press('Enter')
    await page.getByLabel('Capacity').focus()
    await page.keyboard.press('Control+A')
    await page.keyboard.type('9')
    await page.getByText('Each IP address may send 9 requests per hour').waitFor()
    await page.getByText('The rule is valid.').waitFor()
    await tabTo('Review and save')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await expect.poll(() => page.evaluate('document.activeElement.innerText')).toBe('Review and save')
    await page.keyboard.press('Enter')
    await tabTo('Save')
    await page.keyboard.press('Enter')
    await page.getByText('login was saved and is in effect.').waitFor()
  })

  it('imports a rules file after showing the difference', async () => {
    const shop = await openShop()
    const page = await open(`${shop.console}#/rules`)
    await page.getByRole('button', { name: 'Import' }).click()
    await page
      .getByLabel('YAML / JSON')
      .fill('id: extra\nrules:\n  - id: all\n    bands: [{ capacity: 3, window: 1m }]\n')
    await page.getByRole('dialog').getByText('capacity: 3', { exact: false }).first().waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Import' }).click()
    await page.getByText('Imported rule sets: 1.').waitFor()
    await page.getByText('Each IP address may send 3 requests per minute.').waitFor()
  })
})
