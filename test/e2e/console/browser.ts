/** A real browser and a real server for the tests of the console. */
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BrowserContext, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'

export type Theme = 'dark' | 'light'

export interface OpenOptions {
  readonly theme?: Theme
  readonly width?: number
  readonly height?: number
  readonly language?: 'en' | 'ko'
}

const flags = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

export interface Browser {
  readonly context: BrowserContext
  close(): Promise<void>
}

export async function launchBrowser(): Promise<Browser> {
  const profile = mkdtempSync(join(tmpdir(), 'fluxgate-browser-'))
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.FLUXGATE_CHROMIUM ?? '/usr/bin/chromium',
    headless: true,
    args: flags,
    // Users have this protection: the browser ignores changes of the URL that follow too fast.
    ignoreDefaultArgs: ['--disable-ipc-flooding-protection'],
    timeout: 60_000,
    viewport: { width: 1280, height: 900 },
    timezoneId: 'Europe/Berlin',
    locale: 'en-GB',
  })
  return {
    context,
    async close() {
      await context.close()
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

/** A page and everything that a test must not find on it. */
export interface ConsolePage extends Page {
  /** Errors of scripts and of the content security policy. */
  readonly problems: readonly string[]
  /** Hosts that were contacted. */
  readonly hosts: ReadonlySet<string>
}

/** One browser for all tests of a file. Each page has its own session storage. */
export function useBrowser() {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser.close())
  return async (url: string, { theme = 'dark', width = 1280, height = 900, language = 'en' }: OpenOptions = {}) => {
    const page = await browser.context.newPage()
    const problems: string[] = []
    const hosts = new Set<string>()
    page.on('pageerror', (error) => problems.push(error.message))
    page.on('console', (message) => {
      // The browser reports every response with an error status. The console asks for nothing that may be missing.
      const isResponse = /Failed to load resource: .* status of (?!404)/.test(message.text())
      if (message.type() === 'error' && !isResponse) problems.push(message.text())
    })
    page.on('request', (request) => hosts.add(new URL(request.url()).host))
    await page.setViewportSize({ width, height })
    await page.emulateMedia({ colorScheme: theme })
    await page.addInitScript(
      `localStorage.setItem('fluxgate.language', '${language}'); localStorage.removeItem('fluxgate.theme')`,
    )
    page.setDefaultTimeout(60_000)
    await page.goto(url)
    return Object.assign(page, { problems, hosts }) as ConsolePage
  }
}

const axeFile = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

interface AxeResult {
  readonly violations: readonly {
    readonly id: string
    readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[]
  }[]
}

/** The placeholders of search fields that are wider than their field. Other placeholders may be IDs of any length. */
const cutPlaceholders = `[...document.querySelectorAll('input[type=search]')].flatMap((input) => {
  const { font, paddingLeft, paddingRight } = getComputedStyle(input)
  const context = document.createElement('canvas').getContext('2d')
  context.font = font
  const room = input.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight)
  return input.clientWidth === 0 || context.measureText(input.placeholder).width <= room ? [] : [input.placeholder]
})`

/** Checks the page against WCAG 2.2 AA, as far as axe can, and that nothing is cut off or wider than the window. */
export async function expectAccessible(page: ConsolePage): Promise<void> {
  // Playwright evaluates in the page's own world, which the content security policy does not restrict.
  const { readFileSync } = await import('node:fs')
  await page.evaluate(readFileSync(axeFile, 'utf8'))
  const { violations } = (await page.evaluate(
    `axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })`,
  )) as AxeResult
  expect(
    violations.map(({ id, nodes }) => [
      id,
      ...nodes.slice(0, 3).map(({ html, failureSummary }) => `${html} ${failureSummary}`),
    ]),
  ).toEqual([])
  expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
  expect(await page.evaluate(cutPlaceholders)).toEqual([])
}
