// @ts-check
/** A running `fluxgate serve`, as a user starts it. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Broken } from '../measure.mjs'
import { stopOnExit } from '../stop-on-exit.mjs'

const command = fileURLToPath(new URL('../../dist/command/main.js', import.meta.url))

export const rules = {
  ruleSets: [
    {
      id: 'shop',
      rules: [
        {
          id: 'reads',
          path: '/api/**',
          bands: [
            { label: 'second', capacity: 20, window: '1s' },
            { label: 'minute', capacity: 600, window: '1m' },
          ],
        },
        { id: 'login', path: '/login', method: 'POST', bands: [{ label: 'minute', capacity: 5, window: '1m' }] },
        { id: 'all', limitScope: 'GLOBAL', bands: [{ label: 'second', capacity: 100_000, window: '1s' }] },
      ],
    },
  ],
}

/** @returns {Promise<{ port: number, pid: number, stop(): void }>} */
export async function startServer() {
  const folder = mkdtempSync(join(tmpdir(), 'fluxgate-bench-console-'))
  writeFileSync(join(folder, 'rules.json'), JSON.stringify(rules))
  const child = spawn(process.execPath, [command, 'serve', '--rules', join(folder, 'rules.json'), '--port', '0'], {
    cwd: folder,
    env: { ...process.env, FLUXGATE_SERVER_REVEAL_KEYS: 'true' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const stop = stopOnExit(() => {
    child.kill()
    rmSync(folder, { recursive: true, force: true })
  })
  return new Promise((resolve, reject) => {
    let text = ''
    child.stdout.on('data', (chunk) => {
      text += chunk
      const port = /http:\/\/127\.0\.0\.1:(\d+)/.exec(text)?.[1]
      if (port !== undefined) resolve({ port: Number(port), pid: /** @type {number} */ (child.pid), stop })
    })
    child.once('exit', () => reject(new Broken(`The server did not start: ${text}`)))
  })
}
