// @ts-check
/** Frames of the overview while events arrive, compared with the same page without events. */
import { createServer, request } from 'node:http'
import { withBrowser } from './browser.mjs'
import { startServer } from './server.mjs'

const tickMs = 20
/** A frame is dropped if the next one starts after more than one and a half intervals of 60 Hz. */
const dropped = 25

/**
 * Forwards requests to the server, but sends its own events. The server sends at most 20 decisions per second.
 *
 * @param {number} target port of the server
 * @param {number} perSecond
 */
async function startProxy(target, perSecond) {
  let sent = 0
  const proxy = createServer((incoming, response) => {
    if (incoming.url !== '/api/events') {
      const { url, method, headers } = incoming
      const forwarded = request({ port: target, host: '127.0.0.1', path: url, method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(response)
      })
      forwarded.on('error', () => response.destroy())
      incoming.pipe(forwarded)
      return
    }
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    response.write('retry: 3000\n\n')
    const timer = setInterval(() => {
      let text = ''
      for (let i = 0; i < (perSecond * tickMs) / 1000; i++) text += eventOf(++sent)
      if (text !== '') response.write(text)
    }, tickMs)
    response.once('close', () => clearInterval(timer))
  })
  await new Promise((resolve) => proxy.listen(0, '127.0.0.1', () => resolve(undefined)))
  const { port } = /** @type {import('node:net').AddressInfo} */ (proxy.address())
  return {
    port,
    stop() {
      proxy.closeAllConnections()
      proxy.close()
    },
  }
}

/** A rejection, of one of 500 keys. */
const eventOf = (/** @type {number} */ i) =>
  `id: ${i}\nevent: decision\ndata: ${JSON.stringify({
    at: Date.now(),
    allowed: false,
    delayMs: 0,
    reason: 'LIMITED',
    ruleSetId: 'shop',
    ruleId: 'reads',
    band: 'second',
    key: `198.51.100.${i % 500}`,
    limit: 20,
    remaining: 0,
    retryAfterMs: i % 1000,
    degraded: false,
    method: 'GET',
    path: '/api/items',
    traceId: null,
    weight: 1,
  })}\n\n`

/** Records the time of each frame. */
const record = `window.frames_ = []; (function frame(at) { window.frames_.push(at); requestAnimationFrame(frame) })(performance.now())`

/**
 * @param {number} perSecond events
 * @param {number} seconds
 * @returns {Promise<{ frames: number, droppedFrames: number, busyShare: number }>} `busyShare` of the main thread
 */
export async function framesWith(perSecond, seconds) {
  const server = await startServer()
  const proxy = await startProxy(server.port, perSecond)
  try {
    return await withBrowser(async (context) => {
      const page = await context.newPage()
      const session = await context.newCDPSession(page)
      await session.send('Performance.enable')
      const busy = async () => {
        const { metrics } = await session.send('Performance.getMetrics')
        return metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN
      }
      await page.goto(`http://127.0.0.1:${proxy.port}/console`)
      await page.getByText('Live', { exact: true }).waitFor()
      if (perSecond > 0) await page.locator('.rejections li').first().waitFor()
      await page.waitForTimeout(1_000)
      await page.evaluate(record)
      const [startedAt, before] = [performance.now(), await busy()]
      await page.waitForTimeout(seconds * 1000)
      const share = (await busy()) - before
      const elapsed = (performance.now() - startedAt) / 1000
      const times = /** @type {number[]} */ (await page.evaluate('window.frames_'))
      const gaps = times.slice(1).map((at, i) => at - /** @type {number} */ (times[i]))
      return {
        frames: gaps.length,
        droppedFrames: gaps.filter((gap) => gap > dropped).length,
        busyShare: share / elapsed,
      }
    })
  } finally {
    proxy.stop()
    server.stop()
  }
}
