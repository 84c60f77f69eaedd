// @ts-check
/** A browser without a window, as the tests of the console use it. */
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { cpuTimeUs } from '../http/processes.mjs'

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

/**
 * Runs `work` with a new browser.
 *
 * @template T
 * @param {(context: import('playwright-core').BrowserContext) => Promise<T>} work
 */
export async function withBrowser(work) {
  const profile = await mkdtemp(join(tmpdir(), 'fluxgate-bench-browser-'))
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.FLUXGATE_CHROMIUM ?? '/usr/bin/chromium',
    args: flags,
    viewport: { width: 1280, height: 900 },
    timeout: 60_000,
  })
  context.setDefaultTimeout(120_000)
  try {
    return await work(context)
  } finally {
    await context.close()
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** CPU time in microseconds of all renderer processes that this process has started. */
export function rendererCpuUs() {
  const parents = new Map(processes().map(({ pid, parent }) => [pid, parent]))
  const isOurs = (/** @type {number | undefined} */ pid) => {
    for (let at = pid; at !== undefined && at > 1; at = parents.get(at)) if (at === process.pid) return true
    return false
  }
  return processes()
    .filter(({ pid, command }) => command.includes('--type=renderer') && isOurs(pid))
    .reduce((sum, { pid }) => sum + cpuTimeUs(pid), 0)
}

function processes() {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const parent = readFileSync(`/proc/${name}/stat`, 'utf8').split(') ')[1]?.split(' ')[1]
        return { pid: Number(name), parent: Number(parent), command: readFileSync(`/proc/${name}/cmdline`, 'utf8') }
      } catch {
        // The process has exited.
        return []
      }
    })
}
