import type { MongoChangeStream, MongoCollection, MongoCollections } from './database.js'

/**
 * Checks whether the server supports change streams. MongoDB supports them in replica sets and sharded clusters; standalone
 * servers and some compatible servers do not.
 */
export async function canWatch({ rules }: MongoCollections): Promise<boolean> {
  const stream = rules.watch([], { maxAwaitTimeMS: 1 })
  try {
    await stream.tryNext()
    return true
  } catch (error) {
    if (isServerError(error)) return false
    throw error
  } finally {
    await stream.close().catch(() => {})
  }
}

/** An error reply means that change streams are not supported; a connection error does not. */
const isServerError = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && typeof error.code === 'number'

export interface WatchOptions {
  readonly open: () => Promise<MongoCollections>
  readonly onChange: () => void
  readonly onError: (error: unknown) => void
}

const firstPauseMs = 100
const longestPauseMs = 30_000

/** Watches the collections of rules and heads for changes by any process. Returns a function that stops watching. */
export function watchRules({ open, onChange, onError }: WatchOptions): () => void {
  const stopping = new AbortController()
  const { signal } = stopping
  void followStream({ open: async () => (await open()).rules, onChange, onError, signal })
  void followStream({ open: async () => (await open()).sets, onChange, onError, signal })
  return () => stopping.abort()
}

interface StreamOptions extends Omit<WatchOptions, 'open'> {
  readonly open: () => Promise<MongoCollection>
  readonly signal: AbortSignal
}

/**
 * The driver resumes a stream after a short interruption. A lost stream is reopened at its last position, or at the current
 * time if the server no longer has that position. In both cases a change is reported, because some may have been missed.
 */
async function followStream({ open, onChange, onError, signal }: StreamOptions): Promise<void> {
  let resumeAfter: unknown
  let pauseMs = firstPauseMs
  for (let isAgain = false; !signal.aborted; isAgain = true) {
    if (isAgain) await pause(pauseMs * (0.5 + Math.random() / 2), signal)
    pauseMs = Math.min(longestPauseMs, pauseMs * 2)
    let stream: MongoChangeStream | undefined
    const stop = (): void => {
      stream?.close().catch(() => {})
    }
    try {
      const collection = await open()
      signal.throwIfAborted()
      stream = collection.watch([], resumeAfter === undefined ? {} : { resumeAfter })
      signal.addEventListener('abort', stop)
      const first = await stream.tryNext()
      pauseMs = firstPauseMs
      if (isAgain || first !== null) onChange()
      while (!signal.aborted) {
        await stream.next()
        onChange()
      }
    } catch (error) {
      if (signal.aborted) return
      resumeAfter = isServerError(error) ? undefined : stream?.resumeToken
      onError(error)
    } finally {
      signal.removeEventListener('abort', stop)
      stop()
    }
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(end, ms).unref()
    function end(): void {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    signal.addEventListener('abort', end)
  })
}
