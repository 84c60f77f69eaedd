// @ts-check
/**
 * Allows one run at a time in a directory. The lock file contains the process id of its owner, which updates the
 * modification time regularly. A lock left by a killed process or a power failure is therefore detected and taken over.
 */
import { linkSync, readFileSync, renameSync, rmSync, statSync, utimes, writeFileSync } from 'node:fs'

const heartbeatMs = 1_000
const staleMs = 30_000
const pollMs = 100

/**
 * @param {string} lock path of the lock file
 * @param {(owner: number) => void} onWait called once if another process holds the lock
 * @param {() => Promise<void>} work
 */
export async function withLock(lock, onWait, work) {
  for (let waited = false; !take(lock); ) {
    const owner = liveOwner(lock)
    if (owner === undefined) continue
    if (!waited) onWait(owner)
    waited = true
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
  const heartbeat = setInterval(() => utimes(lock, new Date(), new Date(), () => {}), heartbeatMs)
  const release = () => rmSync(lock, { force: true })
  process.once('exit', release)
  try {
    await work()
  } finally {
    clearInterval(heartbeat)
    process.off('exit', release)
    release()
  }
}

/** Uses a link, which appears together with its content: the lock never exists without an owner. */
function take(/** @type {string} */ lock) {
  const mine = `${lock}.${process.pid}`
  writeFileSync(mine, String(process.pid))
  try {
    linkSync(mine, lock)
    return true
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    throw error
  } finally {
    rmSync(mine, { force: true })
  }
}

/** Returns the process that holds the lock. A stale lock is removed; the result is then undefined. */
function liveOwner(/** @type {string} */ lock) {
  try {
    const owner = Number(readFileSync(lock, 'utf8'))
    if (isAlive(owner) && Date.now() - statSync(lock).mtimeMs < staleMs) return owner
    const aside = `${lock}.stale.${process.pid}`
    renameSync(lock, aside)
    // Another run may have taken over between the check and the rename. Its lock is restored.
    if (Number(readFileSync(aside, 'utf8')) !== owner) linkSync(aside, lock)
    rmSync(aside, { force: true })
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
  }
  return undefined
}

function isAlive(/** @type {number} */ pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return codeOf(error) === 'EPERM'
  }
}

const codeOf = (/** @type {unknown} */ error) => /** @type {NodeJS.ErrnoException} */ (error).code
