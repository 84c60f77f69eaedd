// @ts-check
/** Time to compare two versions of the rules over an access log, in the worker of the browser. */
import { once } from 'node:events'
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { finished } from 'node:stream/promises'
import { shuffles } from '../access.mjs'
import { rendererCpuUs, withBrowser } from './browser.mjs'
import { startServer } from './server.mjs'

/**
 * @param {number} lines
 * @returns {Promise<{ lines: number, seconds: number, cpuSeconds: number }>} `cpuSeconds` of all threads of the page
 */
export async function logReplay(lines) {
  const folder = mkdtempSync(join(tmpdir(), 'fluxgate-bench-log-'))
  const server = await startServer()
  try {
    const file = join(folder, 'access.log')
    await writeLog(file, lines)
    return await withBrowser(async (context) => {
      const page = await context.newPage()
      await page.goto(`http://127.0.0.1:${server.port}/console#/whatif`)
      await page.locator('input[type=file]').setInputFiles(file)
      const rules = page.getByRole('textbox', { name: 'Changed rules' })
      await rules.fill((await rules.inputValue()).replace('capacity: 20', 'capacity: 10'))
      const compare = page.getByRole('button', { name: 'Compare' })
      await compare.isEnabled()
      await page.getByText('The rule set is valid.').waitFor()
      const [startedAt, usedBefore] = [performance.now(), rendererCpuUs()]
      await compare.click()
      await page.getByText(`${lines.toLocaleString('en')} lines (access log)`).waitFor()
      return {
        lines,
        seconds: (performance.now() - startedAt) / 1000,
        cpuSeconds: (rendererCpuUs() - usedBefore) / 1e6,
      }
    })
  } finally {
    server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** 400 requests per second from a heavy client and up to 50,000 others, in the combined format. */
async function writeLog(/** @type {string} */ file, /** @type {number} */ lines) {
  const stream = createWriteStream(file)
  const next = shuffles(50_000)
  let others = next()
  const start = Date.UTC(2026, 10, 18)
  let text = ''
  for (let i = 0; i < lines; i++) {
    const at = new Date(start + i * 2.5)
    const other = others[i % others.length] ?? 0
    if (i % others.length === 0) others = next()
    const ip = i % 4 === 0 ? '203.0.113.7' : `198.18.${other >> 8}.${other & 255}`
    const request = i % 10 === 0 ? 'POST /login' : `GET /api/items/${other}`
    const time = `${String(at.getUTCDate()).padStart(2, '0')}/Nov/2026:${at.toISOString().slice(11, 19)} +0000`
    text += `${ip} - - [${time}] "${request} HTTP/1.1" 200 512 "-" "Mozilla/5.0 (X11; Linux x86_64)"\n`
    if (text.length < 1 << 20) continue
    if (!stream.write(text)) await once(stream, 'drain')
    text = ''
  }
  stream.end(text)
  await finished(stream)
}
