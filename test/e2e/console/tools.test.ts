import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { commandLine } from '../command-line.js'
import { expectAccessible, useBrowser } from './browser.js'
import { openShop } from './shop.js'

const open = useBrowser()

describe('the playground', () => {
  it('compares all algorithms and keeps the scenario in the URL', async () => {
    const shop = await openShop()
    const page = await open(`${shop.console}#/playground`)
    const fixed = page.getByRole('region', { name: 'FIXED_WINDOW' })
    const concurrency = page.getByRole('region', { name: 'CONCURRENCY' })
    // Ten requests arrive within 100 ms, and ten more within the next 100 ms.
    await concurrency.getByText('30 (50%)').waitFor()
    await concurrency.getByText('10 of 10').waitFor()
    await page.getByRole('slider', { name: /Request duration/ }).fill('50')
    await concurrency.getByText('60 (100%)').waitFor()
    await fixed.getByText('20 of 10').waitFor()
    await page.getByRole('region', { name: 'Offered traffic' }).getByText('20 of 10').waitFor()
    await page.getByRole('region', { name: 'SLIDING_WINDOW_LOG' }).getByText('10 of 10').waitFor()
    await page.getByRole('slider', { name: /Capacity/ }).fill('20')
    await fixed.getByText('40 of 20').waitFor()
    await page.waitForURL(/capacity=20/)
    await page.getByRole('button', { name: 'Draw it' }).click()
    const drawing = page.getByRole('slider', { name: 'Drawn traffic' })
    await drawing.press('ArrowUp')
    await drawing.getAttribute('aria-valuetext').then((text) => expect(text).toBe('slot 1: 16 requests'))
    await expectAccessible(page)
    await page.waitForURL(/drawn=g/)
    const copy = await open(page.url())
    await copy.getByRole('slider', { name: 'Drawn traffic' }).waitFor()
    expect(await copy.getByRole('slider', { name: /Capacity/ }).inputValue()).toBe('20')
  })

  it('draws traffic with the mouse, also in the slots that a fast mouse skips', async () => {
    const page = await open(`${pathToFileURL('dist/playground.html')}#/?capacity=5`)
    await page.getByRole('button', { name: 'Draw it' }).click()
    const drawing = page.getByRole('slider', { name: 'Drawn traffic' })
    const { x, y, width, height } = (await drawing.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 }
    const moveTo = (slot: number, count: number) =>
      page.mouse.move(x + ((slot - 0.5) * width) / 48, y + (1 - count / 35) * height)
    const drawn = () => new URLSearchParams(page.url().split('?')[1]).get('drawn') ?? ''
    await page.waitForURL(/drawn=/)
    const before = drawn()
    await moveTo(5, 10)
    await page.mouse.down()
    await moveTo(45, 30)
    await page.mouse.up()
    expect(await drawing.getAttribute('aria-valuetext')).toBe('slot 45: 30 requests')
    const line = Array.from({ length: 41 }, (_, i) => Math.round(10 + i / 2).toString(36)).join('')
    const after = `${before.slice(0, 4)}${line}${before.slice(45)}`
    await expect.poll(drawn).toBe(after)
    // Without a button, the mouse draws nothing.
    await moveTo(20, 1)
    await page.mouse.down()
    await moveTo(20, -50)
    await page.mouse.up()
    const cleared = `${after.slice(0, 19)}0${after.slice(20)}`
    await expect.poll(drawn).toBe(cleared)
    const total = [...cleared].reduce((sum, digit) => sum + Number.parseInt(digit, 36), 0)
    await page.getByRole('region', { name: 'Offered traffic' }).getByText(String(total), { exact: true }).waitFor()
    await expectAccessible(page)
    expect(page.problems).toEqual([])
  })

  it('follows a slider that is dragged for long, although browsers limit changes of the URL', async () => {
    const shop = await openShop()
    const page = await open(`${shop.console}#/playground`)
    await page.getByRole('slider', { name: /Capacity/ }).waitFor()
    // Chromium ignores changes of the URL after the first 200 in ten seconds.
    await page.evaluate(`
      const slider = document.querySelector('input[type=range]')
      for (let i = 0; i < 300; i++) {
        slider.value = String(1 + (i % 40))
        slider.dispatchEvent(new Event('input', { bubbles: true }))
      }`)
    await page.getByRole('region', { name: 'FIXED_WINDOW' }).getByText('40 of 20').waitFor()
    await page.waitForURL(/capacity=20/)
  })

  it('is also a single file, which opens from the disk and loads nothing', async () => {
    const page = await open(`${pathToFileURL('dist/playground.html')}#/?traffic=edge&capacity=5`)
    await page.getByRole('region', { name: 'FIXED_WINDOW' }).getByText('10 of 5').waitFor()
    await expectAccessible(page)
    expect(page.problems).toEqual([])
    expect([...page.hosts]).toEqual([''])
  })
})

describe('the key page', () => {
  it('finds a key, shows its bucket, overrides, refunds and resets it', async () => {
    const shop = await openShop()
    await shop.traffic()
    const page = await open(`${shop.console}#/keys`)
    await page.getByRole('combobox', { name: /^Key or prefix/ }).fill('203')
    await page.getByRole('button', { name: '203.0.113.7' }).first().click()
    const card = page.getByRole('region', { name: 'Login attempts' })
    await card.getByRole('img', { name: 'per-hour: 0 of 5 left' }).waitFor()
    await expectAccessible(page)
    await card.getByRole('button', { name: 'Refund' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Refund' }).click()
    await card.getByRole('img', { name: 'per-hour: 1 of 5 left' }).waitFor()
    await card.getByRole('button', { name: 'Reset' }).click()
    await card.getByRole('img', { name: 'per-hour: 5 of 5 left' }).waitFor()
    await card.getByRole('button', { name: 'Override' }).click()
    await page.getByLabel('Action').selectOption('DENY')
    await page.getByLabel('Note').fill('abuse')
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await card.getByText('override: DENY').waitFor()
    const login = { method: 'POST', path: '/login', clientIp: '203.0.113.7' }
    expect(await shop.check(login)).toMatchObject({ allowed: false, reason: 'DENY_LISTED' })
    await card.getByRole('button', { name: 'Delete override' }).click()
    await card.getByText('override: DENY').waitFor({ state: 'detached' })
    expect(await shop.check(login)).toMatchObject({ allowed: true })
    expect(page.problems).toEqual([])
  })

  it('shows every used bucket of a key with its reservations, and refunds the cost that its rule charges', async () => {
    const rule = (id: string, fields: object) => ({ id, path: '/ai/**', limitScope: 'USER_ID', ...fields })
    const rules = [
      rule('requests', { bands: [{ label: 'per-hour', capacity: 4, window: '1h' }] }),
      rule('tokens', {
        cost: 'tokens',
        // Does not refill while the test runs.
        algorithm: 'SLIDING_WINDOW_LOG',
        when: { 'header.x-model': ['large', 'huge'], 'attributes.beta': 'on', clientIp: '10.0.0.0/8' },
        bands: [{ label: 'per-hour', capacity: 1000, window: '1h' }],
      }),
      rule('unused', { path: '/other', bands: [{ capacity: 5, window: '1h' }] }),
    ]
    const shop = await openShop({ rules: { ruleSets: [{ id: 'shop', rules }] } })
    const request = { path: '/ai/chat', userId: 'u1', clientIp: '10.1.2.3', headers: { 'x-model': 'large' } }
    await shop.check({ ...request, attributes: { beta: 'on' }, costs: { tokens: 400 } })
    const reserved = await fetch(`${shop.url}/api/ratelimit/reserve`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ ...request, attributes: { beta: 'on' }, costs: { tokens: 100 }, ttlMs: 600_000 }),
    })
    expect(reserved.status).toBe(200)
    const page = await open(`${shop.console}#/keys?key=u1`)
    // The rule for requests decides, because it has fewer requests left in proportion. Only its name is in the statistics.
    await page.getByRole('img', { name: 'per-hour: 2 of 4 left' }).waitFor()
    await page.getByRole('region', { name: 'requests' }).getByText('1 reserved in 1 open reservation').waitFor()
    const tokens = page.getByRole('region', { name: 'tokens' })
    await tokens.getByRole('img', { name: 'per-hour: 500 of 1,000 left' }).waitFor()
    await tokens.getByText('100 reserved in 1 open reservation').waitFor()
    await expectAccessible(page)
    expect(await page.getByRole('region', { name: 'unused' }).count()).toBe(0)
    await tokens.getByRole('button', { name: 'Refund' }).click()
    await page.getByRole('spinbutton', { name: 'tokens' }).fill('300')
    await page.getByRole('dialog').getByRole('button', { name: 'Refund' }).click()
    await tokens.getByRole('img', { name: 'per-hour: 800 of 1,000 left' }).waitFor()
    await page.getByRole('img', { name: 'per-hour: 2 of 4 left' }).waitFor()
    expect(page.problems).toEqual([])
  })

  it('bans a key, lifts its ban, and restores it with undo', async () => {
    const shop = await openShop()
    const page = await open(`${shop.console}#/keys?key=203.0.113.7&set=shop&rule=login`)
    const card = page.getByRole('region', { name: 'Login attempts' })
    await card.getByRole('button', { name: 'Ban' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Length').fill('2d')
    await dialog.getByRole('button', { name: 'Ban' }).click()
    await dialog.getByText('for: must be at most 86400s').waitFor()
    await dialog.getByLabel('Length').fill('1h')
    await expectAccessible(page)
    await dialog.getByRole('button', { name: 'Ban' }).click()
    await card.getByText(/rejected for another (1\sh|59\smin)/).waitFor()
    const login = { method: 'POST', path: '/login', clientIp: '203.0.113.7' }
    expect(await shop.check(login)).toMatchObject({ reason: 'BANNED' })
    await page.goto(`${shop.console}#/keys`)
    const banned = page.getByRole('region', { name: 'Banned keys' })
    await banned.getByRole('row', { name: /^203\.0\.113\.7 shop \/ login in \S+.* by hand/ }).waitFor()
    await expectAccessible(page)
    await banned.getByRole('button', { name: 'Lift ban 203.0.113.7' }).click()
    await banned.getByText('No key is banned.').waitFor()
    await expect.poll(() => shop.check(login)).toMatchObject({ allowed: true })
    await page.getByRole('button', { name: 'Undo' }).click()
    await banned.getByRole('link', { name: '203.0.113.7' }).waitFor()
    expect(await shop.check(login)).toMatchObject({ reason: 'BANNED' })
    expect(page.problems).toEqual([])
  })
})

describe('try it', () => {
  it('explains which rules apply, which condition excluded the others, and the buckets, without charging', async () => {
    const shop = await openShop()
    await shop.traffic()
    const page = await open(`${shop.console}#/try`)
    await page.getByLabel('Method').fill('POST')
    await page.getByLabel('Path').fill('/login')
    await page.getByRole('button', { name: 'Explain' }).click()
    await page.getByText('Would be rejected').waitFor()
    await page.getByRole('img', { name: 'per-hour: 0 of 5 left' }).waitFor()
    await page.getByText('path: expected /api/**, received /login').waitFor()
    await expectAccessible(page)
    await page.getByLabel('Client IP').fill('198.51.100.1')
    for (let i = 0; i < 2; i++) await page.getByRole('button', { name: 'Explain' }).click()
    await page.getByText('Would be allowed').waitFor()
    await page.getByRole('img', { name: 'per-hour: 5 of 5 left' }).waitFor()
  })
})

describe('candidates', () => {
  it('are started from an edit, compared on live traffic without effect, and promoted with undo', async () => {
    const shop = await openShop()
    const attributes = '{"cost":1.0,"serial":12345678901234567890}'
    const rule = await fetch(`${shop.url}/api/rule-sets/shop/rules/login`, {
      method: 'PATCH',
      headers: { 'Content-Type': 'application/merge-patch+json' },
      body: `{"attributes":${attributes}}`,
    })
    expect(rule.status).toBe(200)
    const page = await open(`${shop.console}#/rules/shop/login`)
    await page.getByLabel('Capacity').fill('3')
    await page.getByRole('button', { name: 'Try as candidate' }).click()
    await page.getByRole('heading', { name: 'Candidate of shop' }).waitFor()
    await page.getByText('No decisions yet.').waitFor()
    await shop.traffic()
    // 5 of 7 attempts are allowed now, 3 under the candidate.
    await page.getByRole('row', { name: 'Login attempts 2 0 2' }).waitFor()
    await page.getByRole('row', { name: '203.0.113.7 login 2 0 2' }).waitFor()
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Promote' }).click()
    await page.getByRole('dialog').getByText('rejected 2 more requests').waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Promote' }).click()
    await page.getByText('The candidate of shop is now in effect.').waitFor()
    const login = { method: 'POST', path: '/login', clientIp: '203.0.113.9' }
    expect(await shop.check(login)).toMatchObject({ limit: 3 })
    const promoted = await fetch(`${shop.url}/api/rule-sets/shop/rules/login`)
    expect(await promoted.text()).toContain(`"attributes":${attributes}`)
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByText('The candidate of shop is now in effect.').waitFor({ state: 'detached' })
    await expect.poll(() => shop.check(login)).toMatchObject({ limit: 5 })
  })

  it('are edited as YAML, dropped, and restored with undo', async () => {
    const shop = await openShop()
    const page = await open(`${shop.console}#/candidates`)
    await page.getByText('No candidate is running.').waitFor()
    await expectAccessible(page)
    await page.getByRole('button', { name: 'shop' }).click()
    const text = page.getByRole('textbox', { name: 'Candidate rules' })
    const rules = await text.inputValue()
    await text.fill(rules.replace('capacity: 5', 'capacity: many'))
    await page.getByText('bands[0].capacity').waitFor()
    await text.fill(rules.replace('capacity: 5', 'capacity: 4'))
    await page.getByRole('button', { name: 'Start', exact: true }).click()
    await page.getByText('capacity: 4').waitFor()
    await page.getByRole('button', { name: 'Drop' }).click()
    await page.getByText('No candidate is running.').waitFor()
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByText('capacity: 4').waitFor()
    expect(page.problems).toEqual([])
  })
})

describe('what if', () => {
  it('compares current and changed rules over an access log, with the counts of fluxgate simulate', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'fluxgate-log-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const log = join(folder, 'access.log')
    const line = (second: number, ip: string): string =>
      `${ip} - - [18/Nov/2026:10:00:${String(second).padStart(2, '0')} +0000] "POST /login HTTP/1.1" 200 5 "-" "<b>x</b>"`
    const lines = Array.from({ length: 40 }, (_, i) => line(i, i % 2 === 0 ? '203.0.113.7' : '203.0.113.8'))
    writeFileSync(log, [...lines, 'not a log line <script>'].join('\n'))
    const shop = await openShop()
    const command = commandLine()
    onTestFinished(command.remove)
    const { stdout } = command.fluxgate(['simulate', '--from', log, '--rules', shop.rulesFile, '--json'])
    const simulated = JSON.parse(stdout) as { total: { rejected: number } }
    const page = await open(`${shop.console}#/whatif`)
    await page.locator('input[type=file]').setInputFiles(log)
    const rules = page.getByRole('textbox', { name: 'Changed rules' })
    await rules.fill((await rules.inputValue()).replace('capacity: 5', 'capacity: 8'))
    await page.getByRole('button', { name: 'Compare' }).click()
    const result = page.getByRole('region', { name: 'Result', exact: true })
    await result.getByText('24', { exact: true }).waitFor()
    expect(simulated.total.rejected).toBe(30)
    // 2 × (20 − 5) are rejected now, 2 × (20 − 8) under both.
    expect(await result.innerText()).toMatch(
      /Requests\s+40\s+Rejected by both\s+24\s+Only by current rules\s+6\s+Only by changed rules\s+0/,
    )
    await page.getByText('1 line could not be parsed, such as 41.').waitFor()
    await expectAccessible(page)
    expect(page.problems).toEqual([])
    expect([...page.hosts]).toEqual([new URL(shop.url).host])
  })

  it('shows progress, and stops when it is cancelled or another log is chosen', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'fluxgate-log-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const log = join(folder, 'access.jsonl')
    const line = '{"time":"2026-11-18T10:00:00Z","ip":"203.0.113.7","method":"POST","path":"/login"}\n'
    writeFileSync(log, line.repeat(300_000))
    const shop = await openShop()
    const page = await open(`${shop.console}#/whatif`)
    await page.locator('input[type=file]').setInputFiles(log)
    await page.getByText('The rule set is valid.').waitFor()
    await page.getByRole('button', { name: 'Compare' }).click()
    await page.getByRole('progressbar', { name: 'Progress' }).waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('progressbar').waitFor({ state: 'detached' })
    expect(await page.getByRole('button', { name: 'Compare' }).isEnabled()).toBe(true)
    await expect.poll(() => page.workers()).toEqual([])
    await page.getByRole('region', { name: 'Result', exact: true }).waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Compare' }).click()
    await page.getByRole('progressbar', { name: 'Progress' }).waitFor()
    const other = join(folder, 'other.jsonl')
    writeFileSync(other, line)
    await page.locator('input[type=file]').setInputFiles(other)
    await page.getByText('other.jsonl').waitFor()
    await page.getByRole('progressbar').waitFor({ state: 'detached' })
    await expect.poll(() => page.workers()).toEqual([])
    expect(await page.getByRole('region', { name: 'Result', exact: true }).count()).toBe(0)
  })
})
