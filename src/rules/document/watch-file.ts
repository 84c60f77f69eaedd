import { type FSWatcher, watch } from 'node:fs'
import { realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { unreadable } from './rules-file.js'

/** Editors write in several steps; a look waits until they have been quiet for this long, */
const quietMs = 50
/** but not for ever in a directory that is never quiet. */
const patienceMs = 500
/** What the system does not announce (network mounts, a swapped parent directory) is noticed this often. */
const lookEveryMs = 2_000

interface WatchedFile {
  readonly file: string
  readonly shown: string
  /** Of the present content; rejects if it cannot be read. */
  digest(): Promise<string>
  /** The content that the watcher's owner already has; `undefined` if it has none. */
  readonly known: string | undefined
  onChange(): void
  onError(error: unknown): void
}

/**
 * Calls back when the content of a file has changed. Directories are watched, not the file: editors and Kubernetes
 * replace a file, or a link on the way to it, and a watch on the file itself would keep looking at the old one.
 * Nothing here keeps the process alive.
 */
export function watchFile({ file, shown, digest, known, onChange, onError }: WatchedFile): () => void {
  const watchers = new Map<string, { readonly watcher: FSWatcher; readonly inode: number }>()
  let seen = known
  let firstEventAt: number | undefined
  let quiet: NodeJS.Timeout | undefined
  let looking = false
  let lookAgain = false
  let stopped = false
  let watchFailed = false
  let mark: string | undefined

  const look = async (): Promise<void> => {
    firstEventAt = undefined
    if (looking) {
      lookAgain = true
      return
    }
    looking = true
    try {
      do {
        lookAgain = false
        await attach()
        mark = await markOf(file)
        await compare()
      } while (lookAgain && !stopped)
    } finally {
      looking = false
    }
  }

  const lookIfTouched = async (): Promise<void> => {
    if (looking || ((await markOf(file)) === mark && watchers.size > 0)) return
    await look()
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

  /** Watches the directory of the file and, if it is a link, the one of what it points to. */
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
      onError(unreadable(`${shown} cannot be watched; it is looked at every ${lookEveryMs / 1_000} s instead.`, cause))
    }
    try {
      const watcher = watch(directory, { persistent: false }, eventSeen)
      watcher.on('error', failed)
      watchers.set(directory, { watcher, inode })
      // The file may have changed between the last look and now.
      lookAgain = true
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
    quiet = setTimeout(look, Math.min(quietMs, Math.max(0, firstEventAt + patienceMs - now))).unref()
  }

  const regular = setInterval(lookIfTouched, lookEveryMs).unref()
  void look()
  return () => {
    stopped = true
    clearTimeout(quiet)
    clearInterval(regular)
    for (const directory of watchers.keys()) detach(directory)
  }
}

/** Changes with almost every change of the file, and costs no reading. */
export async function markOf(file: string): Promise<string | undefined> {
  return stat(file).then(
    ({ dev, ino, size, mtimeMs, ctimeMs }) => [dev, ino, size, mtimeMs, ctimeMs].join(),
    () => undefined,
  )
}
