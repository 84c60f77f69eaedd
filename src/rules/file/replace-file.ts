import { randomBytes } from 'node:crypto'
import { chmod, chown, open, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

/**
 * Replaces a file atomically: readers see the old or the new content, even after a crash. Changes nothing and returns false if
 * `isStillWanted` returns false.
 */
export async function replaceFile(
  file: string,
  content: Iterable<Uint8Array>,
  isStillWanted: () => Promise<boolean>,
): Promise<boolean> {
  const directory = dirname(file)
  const temporary = join(directory, `.${basename(file)}.${randomBytes(6).toString('hex')}.tmp`)
  const before = await stat(file).catch(() => undefined)
  try {
    const handle = await open(temporary, 'wx', 0o600)
    try {
      await writeFile(handle, content)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await chmod(temporary, before?.mode ?? 0o644)
    // Only root can change the owner; a failure is ignored for other users.
    if (before !== undefined) await chown(temporary, before.uid, before.gid).catch(() => {})
    if (!(await isStillWanted())) return false
    await rename(temporary, file)
    await syncDirectory(directory)
    return true
  } finally {
    await rm(temporary, { force: true })
  }
}

/** Makes the rename durable across a power failure, on systems that support it. */
async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r').catch(() => undefined)
  await handle?.sync().catch(() => {})
  await handle?.close()
}
