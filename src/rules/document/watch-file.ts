import { type FSWatcher, watch } from 'node:fs'
import { realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { unreadable } from './rules-file.js'

/** Editors write in several steps, so a check waits until there are no events for this long. */
const quietMs = 50
/** Upper bound of that wait, for directories with continuous events. */
const maxQuietWaitMs = 500
/** Interval of regular checks, for changes without events (network mounts, a replaced parent directory). */
const checkIntervalMs = 2_000

interface WatchedFile {
  readonly file: string
  readonly shown: string
  /** Digest of the current content; rejects if the file is unreadable. */
  digest(): Promise<string>
  /** Digest of the content that is already loaded, if any. */
  readonly known: string | undefined
  onChange(): void
  onError(error: unknown): void
}

/**
 * Calls `onChange` when the content of a file changes. It watches directories, not the file: editors and Kubernetes
 * replace the file or a symbolic link in its path, and a watcher on the file itself would keep watching the old inode.
 * The watcher does not keep the process alive.
 */
export function watchFile({ file, shown, digest, known, onChange, onError }: WatchedFile): () => void {
  const watchers = new Map<string, { readonly watcher: FSWatcher; readonly inode: number }>()
  let seen = known
  let firstEventAt: number | undefined
  let quiet: NodeJS.Timeout | undefined
  let checking = false
  let checkAgain = false
  let stopped = false
  let watchFailed = false
  let mark: string | undefined

  const check = async (): Promise<void> => {
    firstEventAt = undefined
    if (checking) {
      checkAgain = true
      return
    }
    checking = true
    try {
      do {
        checkAgain = false
        await attach()
        mark = await fileFingerprint(file)
        await compare()
      } while (checkAgain && !stopped)
    } finally {
      checking = false
    }
  }

  const checkIfTouched = async (): Promise<void> => {
    if (checking || ((await fileFingerprint(file)) === mark && watchers.size > 0)) return
    await check()
  }

  const compare = async (): Promise<void> => {
    const [present, error] = await digest().then(
      (result) => [result, undefined] as const,
      (reason: unknown) => [`unreadable: ${reason}`, reason] as const,
    )
    if (stopped || present === seen) return
    const isFirst = seen === undefined
    seen = present
    if (error !== undefined) onError(error)
    else if (!isFirst) onChange()
  }

  /** Watches the directory of the file and, if the file is a symbolic link, the directory of its target. */
  const attach = async (): Promise<void> => {
    const target = await realpath(file).catch(() => file)
    const wanted = new Set([dirname(file), dirname(target)])
    for (const directory of watchers.keys()) if (!wanted.has(directory)) detach(directory)
    for (const directory of wanted) {
      const inode = await stat(directory).then(
        ({ ino }) => ino,
        () => undefined,
      )
      if (watchers.get(directory)?.inode === inode) continue
      detach(directory)
      if (inode !== undefined && !stopped) watchDirectory(directory, inode)
    }
  }

  const watchDirectory = (directory: string, inode: number): void => {
    const failed = (cause: unknown): void => {
      detach(directory)
      if (watchFailed || stopped) return
      watchFailed = true
      onError(
        unreadable(`${shown} cannot be watched; it is checked every ${checkIntervalMs / 1_000} s instead.`, cause),
      )
    }
    try {
      const watcher = watch(directory, { persistent: false }, eventSeen)
      watcher.on('error', failed)
      watchers.set(directory, { watcher, inode })
      // The file may have changed since the last check.
      checkAgain = true
    } catch (error) {
      failed(error)
    }
  }

  const detach = (directory: string): void => {
    watchers.get(directory)?.watcher.close()
    watchers.delete(directory)
  }

  const eventSeen = (): void => {
    if (stopped) return
    const now = performance.now()
    firstEventAt ??= now
    clearTimeout(quiet)
    quiet = setTimeout(check, Math.min(quietMs, Math.max(0, firstEventAt + maxQuietWaitMs - now))).unref()
  }

  const regular = setInterval(checkIfTouched, checkIntervalMs).unref()
  void check()
  return () => {
    stopped = true
    clearTimeout(quiet)
    clearInterval(regular)
    for (const directory of watchers.keys()) detach(directory)
  }
}

/** File metadata that changes with almost every change of the content, without reading it. */
export async function fileFingerprint(file: string): Promise<string | undefined> {
  return stat(file).then(
    ({ dev, ino, size, mtimeMs, ctimeMs }) => [dev, ino, size, mtimeMs, ctimeMs].join(),
    () => undefined,
  )
}
