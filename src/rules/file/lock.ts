import { randomBytes } from 'node:crypto'
import { link, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { FluxGateError } from '../../core/errors.js'
import { codeOf } from '../document/rules-file.js'

/** An edit takes milliseconds, so the holder of an older lock has died. */
const staleMs = 10_000
const maxWaitMs = 20_000

/**
 * Serializes edits of all processes that share the directory. The lock of a dead process is taken over: at once if the process
 * ran on this machine, after a timeout otherwise.
 */
export async function withFileLock<T>(lock: string, run: () => Promise<T>): Promise<T> {
  const mine = JSON.stringify({ pid: process.pid, host: hostname(), token: randomBytes(8).toString('hex') })
  const deadline = performance.now() + maxWaitMs
  while (!(await tryLock(lock, mine))) {
    const stale = await staleLock(lock)
    if (stale !== undefined) await removeLock(lock, stale)
    else if (performance.now() < deadline) await sleep(2 + 10 * Math.random())
    else
      throw new FluxGateError(
        'FLUXGATE_RULES_CONFLICT',
        `${lock} is held by another editor. Nothing was changed: repeat the edit, or remove that file if no edit is running.`,
      )
  }
  try {
    return await run()
  } finally {
    if ((await contentOf(lock)) === mine) await rm(lock, { force: true })
  }
}

async function tryLock(lock: string, mine: string): Promise<boolean> {
  try {
    await writeFile(lock, mine, { flag: 'wx' })
    return true
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    throw error
  }
}

/** The content of a lock whose holder has died. */
async function staleLock(lock: string): Promise<string | undefined> {
  const content = await contentOf(lock)
  const info = await stat(lock).catch(() => undefined)
  if (content === undefined || info === undefined) return undefined
  if (Date.now() - info.mtimeMs > staleMs) return content
  const owner = ownerOf(content)
  return owner?.host === hostname() && !isAlive(owner.pid) ? content : undefined
}

/** Removes the lock with this content. Another process may have removed it in the meantime, and hold a new one, which stays. */
export async function removeLock(lock: string, content: string): Promise<void> {
  const aside = `${lock}.${randomBytes(6).toString('hex')}`
  await rename(lock, aside).catch(() => {})
  if ((await contentOf(aside)) !== content) await link(aside, lock).catch(() => {})
  await rm(aside, { force: true })
}

function ownerOf(content: string): { readonly host: unknown; readonly pid: number } | undefined {
  try {
    return JSON.parse(content)
  } catch {
    // The lock is still being written, or was written by another program.
    return undefined
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return codeOf(error) !== 'ESRCH'
  }
}

const contentOf = (file: string): Promise<string | undefined> => readFile(file, 'utf8').catch(() => undefined)
