import type { MongoChangeStream, MongoCollection, MongoCollections } from './database.js'

/**
 * Asks the server whether it has change streams: MongoDB does in a replica set or a sharded cluster, a server by itself and
 * some that speak its protocol do not.
 */
export async function canWatch({ rules }: MongoCollections): Promise<boolean> {
  const stream = rules.watch([], { maxAwaitTimeMS: 1 })
  try {
    await stream.tryNext()
    return true
  } catch (error) {
    if (isAnswer(error)) return false
    throw error
  } finally {
    await stream.close().catch(() => {})
  }
}

/** A server that has answered has said no; one that cannot be reached has not. */
const isAnswer = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && typeof error.code === 'number'

export interface WatchOptions {
  readonly open: () => Promise<MongoCollections>
  readonly onChange: () => void
  readonly onError: (error: unknown) => void
}

const firstPauseMs = 100
const longestPauseMs = 30_000

/** Follows the changes of rules and of heads, whoever makes them. The result stops it. */
export function watchRules({ open, onChange, onError }: WatchOptions): () => void {
  const stopping = new AbortController()
  const { signal } = stopping
  void follow({ open: async () => (await open()).rules, onChange, onError, signal })
  void follow({ open: async () => (await open()).sets, onChange, onError, signal })
  return () => stopping.abort()
}

interface Following extends Omit<WatchOptions, 'open'> {
  readonly open: () => Promise<MongoCollection>
  readonly signal: AbortSignal
}

/**
 * The driver mends a stream that breaks for a moment. One that is lost is opened again where it ended, or from now on if the
 * server has forgotten that place; as something may have been missed, there is a change to look for then.
 */
async function follow({ open, onChange, onError, signal }: Following): Promise<void> {
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
      resumeAfter = isAnswer(error) ? undefined : stream?.resumeToken
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
