// @ts-check
/**
 * Takes the screenshots of the README and the docs: `npm run screenshots`. Starts a server with example rules and traffic, and
 * opens each page in Chromium. `-- --all <folder>` takes every page instead, in both themes, at 1280 and 375 px, for a review.
 * Texts look best if the fonts Inter and Nanum Gothic are installed (Debian: fonts-inter, fonts-nanum).
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { chromium } from 'playwright-core'
import { at, findOnPath } from './bootstrap/step.mjs'

const port = Number(process.env.FLUXGATE_SCREENSHOT_PORT ?? 8098)
const url = `http://127.0.0.1:${port}`
const { values } = parseArgs({ options: { all: { type: 'string' } } })
const target = values.all ?? at('docs', 'images', 'console')
const folder = mkdtempSync(join(tmpdir(), 'fluxgate-screenshots-'))

const rules = `ruleSets:
  - id: shop
    description: Public API of the shop
    rules:
      - id: reads
        name: Read requests
        path: /api/**
        method: GET
        overrides: true
        bands:
          - { label: per-second, capacity: 20, window: 1s }
          - { label: per-minute, capacity: 600, window: 1m }
      - id: login
        name: Login attempts
        path: /login
        method: POST
        priority: 10
        overrides: true
        bands: [{ label: per-minute, capacity: 5, window: 1m }]
      - id: checkout
        name: Checkout
        path: /checkout/**
        limitScope: USER_ID
        algorithm: LEAKY_BUCKET
        bands: [{ label: spacing, capacity: 10, window: 2s }]
      - id: search
        name: Search
        path: /search
        mode: SHADOW
        algorithm: SLIDING_WINDOW_LOG
        bands: [{ label: per-10-seconds, capacity: 15, window: 10s }]
`

const requests = [
  ['GET', '/api/users/7', 30],
  ['GET', '/api/orders', 25],
  ['POST', '/login', 4],
  ['GET', '/search', 8],
  ['POST', '/checkout/cart', 11],
]

function randomRequest() {
  const total = requests.reduce((sum, [, , weight]) => sum + Number(weight), 0)
  let rest = Math.random() * total
  const [method, path] = requests.find(([, , weight]) => {
    rest -= Number(weight)
    return rest < 0
  }) ?? ['GET', '/about']
  const clientIp = Math.random() < 0.4 ? '203.0.113.7' : `198.51.100.${Math.floor(Math.random() * 60)}`
  return { ruleSetId: 'shop', method, path, clientIp, userId: `user-${Math.floor(Math.random() * 6)}` }
}

/** @param {number} ms */
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

async function sendTraffic() {
  const count = 20 + Math.round(15 * Math.sin(Date.now() / 8_000))
  await fetch(`${url}/api/ratelimit/check/batch`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ checks: Array.from({ length: count }, randomRequest) }),
  }).catch(() => {})
}

/** @typedef {readonly [name: string, hash: string, theme: 'dark' | 'light', width: number, height: number]} Shot */

/** @type {readonly Shot[]} */
const documented = [
  ['overview-dark', '#/overview', 'dark', 1280, 960],
  ['rules', '#/rules', 'light', 1280, 640],
  ['editor', '#/rules/shop/reads', 'dark', 1280, 880],
  ['candidate', '#/candidates/shop', 'light', 1280, 760],
  ['playground', '#/playground', 'light', 1280, 1080],
]

const log = join(folder, 'access.log')

/**
 * Steps that show the result of a page.
 * @type {Readonly<Record<string, (page: import('playwright-core').Page) => Promise<void>>>}
 */
const steps = {
  '#/try': async (page) => {
    await page.getByLabel('Method').fill('POST')
    await page.getByLabel('Path').fill('/login')
    await page.getByRole('button', { name: 'Explain' }).click()
  },
  '#/whatif': async (page) => {
    await page.locator('input[type=file]').setInputFiles(log)
    const text = page.getByRole('textbox', { name: 'Changed rules' })
    await text.fill((await text.inputValue()).replace('capacity: 20', 'capacity: 12'))
    await page.getByRole('button', { name: 'Compare' }).click()
  },
}

/** An access log of ten minutes, whose traffic rises and falls. */
function accessLog() {
  const start = Date.UTC(2026, 10, 18, 10)
  const lines = Array.from({ length: 600 }, (_, second) => {
    const time = new Date(start + second * 1_000).toISOString()
    const count = 14 + Math.round(8 * Math.sin(second / 40))
    return Array.from({ length: count }, (_, i) =>
      JSON.stringify({ time, ip: i % 7 === 0 ? '198.51.100.20' : '203.0.113.7', method: 'GET', path: '/api/orders' }),
    )
  })
  return lines.flat().join('\n')
}

const pages = [
  ['overview', '#/overview'],
  ['rules', '#/rules'],
  ['editor', '#/rules/shop/reads'],
  ['try', '#/try'],
  ['keys', '#/keys'],
  ['key', '#/keys?key=203.0.113.7'],
  ['candidate', '#/candidates/shop'],
  ['what-if', '#/whatif'],
  ['playground', '#/playground'],
]

/** Starts a candidate with a stricter limit, for the report. */
async function startCandidate() {
  /** @type {any} */
  const set = await (await fetch(`${url}/api/rule-sets/shop`)).json()
  for (const rule of set.rules) if (rule.id === 'reads') rule.bands[0].capacity = 15
  const headers = { 'Content-Type': 'application/json' }
  await fetch(`${url}/api/rule-sets/shop/candidate`, { method: 'PUT', headers, body: JSON.stringify(set) })
}

/** @returns {Shot[]} */
function everyPage() {
  return pages.flatMap(([name = '', hash = '']) =>
    /** @type {const} */ (['dark', 'light']).flatMap((theme) =>
      [1280, 375].map((width) => /** @type {Shot} */ ([`${name}-${theme}-${width}`, hash, theme, width, 900])),
    ),
  )
}

writeFileSync(join(folder, 'rules.yaml'), rules)
writeFileSync(log, accessLog())
mkdirSync(target, { recursive: true })
const command = [
  at('dist', 'command', 'main.js'),
  'serve',
  '--rules',
  join(folder, 'rules.yaml'),
  '--port',
  String(port),
]
const env = { ...process.env, FLUXGATE_SERVER_REVEAL_KEYS: 'true' }
const server = spawn(process.execPath, command, { stdio: 'ignore', env })
const traffic = setInterval(sendTraffic, 250)
try {
  await pause(3_000)
  await startCandidate()
  await pause(Number(process.env.FLUXGATE_SCREENSHOT_WARM_UP_MS ?? 90_000))
  const context = await chromium.launchPersistentContext(join(folder, 'profile'), {
    executablePath: findOnPath('chromium') ?? 'chromium',
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking'],
  })
  for (const [name, hash, theme, width, height] of values.all === undefined ? documented : everyPage()) {
    const page = await context.newPage()
    await page.emulateMedia({ colorScheme: theme })
    await page.setViewportSize({ width, height })
    await page.goto(`${url}/console${hash}`)
    await steps[hash]?.(page)
    await pause(3_000)
    await page.screenshot({ path: join(target, `${name}.png`), fullPage: values.all !== undefined })
    await page.close()
  }
  await context.close()
} finally {
  clearInterval(traffic)
  server.kill()
  await once(server, 'exit')
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}
