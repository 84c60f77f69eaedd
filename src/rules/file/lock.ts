import { randomBytes } from 'node:crypto'
import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
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
    if (await isStale(lock)) await discard(lock)
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

async function isStale(lock: string): Promise<boolean> {
  const info = await stat(lock).catch(() => undefined)
  if (info === undefined) return false
  if (Date.now() - info.mtimeMs > staleMs) return true
  const owner = ownerOf(await contentOf(lock))
  return owner?.host === hostname() && !isAlive(owner.pid)
}

/** Renames the lock before removing it, so that only one of several processes removes it. */
async function discard(lock: string): Promise<void> {
  const aside = `${lock}.${randomBytes(6).toString('hex')}`
  await rename(lock, aside).catch(() => {})
  await rm(aside, { force: true })
}

function ownerOf(content: string | undefined): { readonly host: unknown; readonly pid: number } | undefined {
  try {
    return JSON.parse(content ?? '')
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
