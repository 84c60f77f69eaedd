// @ts-check
/**
 * One run at a time in a directory. The lock is a file that holds its owner's process id and whose date the owner keeps
 * fresh, so that a lock left by a killed process or by a machine that lost power is recognised and taken over.
 */
import { linkSync, readFileSync, renameSync, rmSync, statSync, utimes, writeFileSync } from 'node:fs'

const heartbeatMs = 1_000
const staleMs = 30_000
const pollMs = 100

/**
 * @param {string} lock where the lock file is
 * @param {(owner: number) => void} onWait called once if somebody else holds it
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

/** A link appears with its content at once: there is no moment at which the lock exists without an owner. */
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

/** Who holds the lock; undefined if nobody does any more, and then it is out of the way. */
function liveOwner(/** @type {string} */ lock) {
  try {
    const owner = Number(readFileSync(lock, 'utf8'))
    if (isAlive(owner) && Date.now() - statSync(lock).mtimeMs < staleMs) return owner
    const aside = `${lock}.stale.${process.pid}`
    renameSync(lock, aside)
    // Another run may have taken over between the look and the move: then it is not the stale one, and goes back.
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
