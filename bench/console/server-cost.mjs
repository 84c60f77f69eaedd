// @ts-check
/** CPU time of the server per check, with and without an open overview. */
import { cpuTimeUs, startLoad } from '../http/processes.mjs'
import { median } from '../measure.mjs'
import { withBrowser } from './browser.mjs'
import { startServer } from './server.mjs'

const connections = 16
const checks = Array.from({ length: 500 }, (_, i) => {
  const path = i % 10 === 0 ? '/login' : '/api/items'
  const body = JSON.stringify({ ruleSetId: 'shop', clientIp: `198.51.${i % 100}.7`, path, method: 'POST' })
  return `POST /api/ratelimit/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
})

/**
 * Turns in which the page shows the measured server alternate with turns in which it shows another one. The browser is open in
 * both and uses the same cores, so the difference is what the server does for the page. The figure is CPU time.
 *
 * @param {number} pairs
 * @param {number} seconds
 * @returns {Promise<{ withoutUs: number, withUs: number, share: number, idleMs: number }>} `share` is the additional CPU time
 *   per check, `idleMs` the CPU time per second that the page takes without checks
 */
export async function serverCost(pairs, seconds) {
  const server = await startServer()
  const other = await startServer()
  const load = await startLoad()
  const turn = async (/** @type {number} */ duration) => {
    const before = cpuTimeUs(server.pid)
    const { answered } = await load.ask({ port: server.port, connections, seconds: duration, requests: checks })
    return (cpuTimeUs(server.pid) - before) / answered
  }
  try {
    return await withBrowser(async (context) => {
      const page = await context.newPage()
      const turnWith = async (/** @type {number} */ port) => {
        await page.goto(`http://127.0.0.1:${port}/console`)
        await page.getByText('Live', { exact: true }).waitFor()
        // Loading the page is not part of the cost of an open one.
        await page.waitForTimeout(1_000)
        return turn(seconds)
      }
      const perSecond = async () => {
        const before = cpuTimeUs(server.pid)
        await page.waitForTimeout(seconds * 5_000)
        return (cpuTimeUs(server.pid) - before) / 1000 / (seconds * 5)
      }
      for (const { port } of [other, server])
        await load.ask({ port, connections, seconds: seconds / 3, requests: checks })
      const rows = []
      for (let i = 0; i < pairs; i++) {
        const before = await turnWith(other.port)
        const opened = await turnWith(server.port)
        const after = await turnWith(other.port)
        rows.push({ without: (before + after) / 2, opened })
      }
      const unseen = await perSecond()
      await page.goto(`http://127.0.0.1:${server.port}/console`)
      await page.waitForTimeout(1_000)
      return {
        idleMs: (await perSecond()) - unseen,
        withoutUs: median(rows.map(({ without }) => without)),
        withUs: median(rows.map(({ opened }) => opened)),
        share: median(rows.map(({ without, opened }) => opened / without)) - 1,
      }
    })
  } finally {
    load.stop()
    server.stop()
    other.stop()
  }
}
