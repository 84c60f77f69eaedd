import type { MongoChangeStream, MongoDatabase } from './database.js'
import { setsOf } from './database.js'

/**
 * Asks the server whether it has change streams: MongoDB does in a replica set or a sharded cluster, a server by itself and
 * some that speak its protocol do not.
 */
export async function canWatch(database: MongoDatabase): Promise<boolean> {
  const stream = database.watch([], { maxAwaitTimeMS: 1 })
  try {
    await stream.tryNext()
    return true
  } catch (error) {
    // A server that has answered has said no; one that cannot be reached has not.
    if (error instanceof Error && 'code' in error && typeof error.code === 'number') return false
    throw error
  } finally {
    await stream.close().catch(() => {})
  }
}

export interface WatchRulesOptions {
  readonly connect: () => Promise<MongoDatabase>
  readonly collection: string
  readonly onChange: () => void
  readonly onError: (error: unknown) => void
}

const firstPauseMs = 100
const longestPauseMs = 30_000

/**
 * Follows the changes of rules, whoever makes them. The driver mends a stream that breaks for a moment; one that is lost is
 * opened again where it ended, or from now on if the server has forgotten that place, and then everything is loaded once.
 */
export function watchRules({ connect, collection, onChange, onError }: WatchRulesOptions): () => void {
  const pipeline = [{ $match: { 'ns.coll': { $in: [collection, setsOf(collection)] } } }]
  const stopping = new AbortController()
  let stream: MongoChangeStream | undefined
  let resumeAfter: unknown
  let pauseMs = firstPauseMs
  let isAgain = false

  const follow = async (): Promise<void> => {
    const database = await connect()
    if (stopping.signal.aborted) return
    const opened = database.watch(pipeline, resumeAfter === undefined ? {} : { resumeAfter })
    stream = opened
    try {
      const first = await opened.tryNext()
      pauseMs = firstPauseMs
      if (isAgain || first != null) onChange()
      while (!stopping.signal.aborted) {
        await opened.next()
        onChange()
      }
    } finally {
      resumeAfter = opened.resumeToken ?? undefined
      await opened.close().catch(() => {})
    }
  }
  const keepFollowing = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      try {
        await follow()
      } catch (error) {
        if (stopping.signal.aborted) return
        // The place to go on from is gone when the server says anything about it but that it cannot be reached.
        if (error instanceof Error && 'code' in error && typeof error.code === 'number') resumeAfter = undefined
        onError(error)
      }
      isAgain = true
      await pause(pauseMs * (0.5 + Math.random() / 2), stopping.signal)
      pauseMs = Math.min(longestPauseMs, pauseMs * 2)
    }
  }
  void keepFollowing()
  return () => {
    stopping.abort()
    stream?.close().catch(() => {})
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms).unref()
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}
