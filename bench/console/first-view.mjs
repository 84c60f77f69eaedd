// @ts-check
/** Size of the first view, and the time until it shows data. */
import { median } from '../measure.mjs'
import { withBrowser } from './browser.mjs'
import { startServer } from './server.mjs'

/** Runs before the scripts of the page. */
const watch = `new MutationObserver((_, observer) => {
  if (document.querySelector('.tile-value') === null) return
  observer.disconnect()
  window.shownAt = performance.now()
}).observe(document, { childList: true, subtree: true })`

/**
 * @param {number} loads
 * @returns {Promise<{ scriptKb: number, allKb: number, requests: number, shownMs: number }>}
 */
export async function firstView(loads) {
  const { port, stop } = await startServer()
  try {
    return await withBrowser(async (context) => {
      const figures = []
      for (let i = 0; i < loads; i++) {
        const page = await context.newPage()
        const session = await context.newCDPSession(page)
        await session.send('Network.setCacheDisabled', { cacheDisabled: true })
        await page.addInitScript(watch)
        await page.goto(`http://127.0.0.1:${port}/console`)
        await page.locator('.tile-value').first().waitFor()
        figures.push({
          shownMs: Number(await page.evaluate('window.shownAt')),
          files: /** @type {{ name: string, size: number }[]} */ (
            await page.evaluate(
              `performance.getEntriesByType('resource').filter(({ name }) => name.includes('/assets/')).map((it) => ({ name: it.name, size: it.encodedBodySize }))`,
            )
          ),
        })
        await page.close()
      }
      const files = figures[0]?.files ?? []
      const kb = (/** @type {typeof files} */ some) => some.reduce((sum, { size }) => sum + size, 0) / 1024
      return {
        scriptKb: kb(files.filter(({ name }) => name.endsWith('.js'))),
        allKb: kb(files),
        requests: files.length + 1,
        shownMs: median(figures.map(({ shownMs }) => shownMs)),
      }
    })
  } finally {
    stop()
  }
}
