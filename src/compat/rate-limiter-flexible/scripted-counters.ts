import { Script } from '../../redis/client/script.js'
import { blockMs, type HitCounters } from '../counters/hit-counters.js'
import { lua, type RedisCounters } from '../counters/redis-counters.js'

/**
 * Counters that a script of the application increments, as in rate-limiter-flexible. KEYS: counter. ARGV: points to add, duration of
 * the action in seconds, points and duration of the limiter. The script returns the points and the time to live in milliseconds.
 * Blocking is a second call. Without a duration, the script is not used.
 */
export function scriptedCounters(
  counters: RedisCounters,
  source: string,
  limiter: { readonly points: number; readonly duration: number },
): HitCounters {
  const script = new Script(lua(source))
  return {
    async add(key, points, windowMs, block) {
      const seconds = Math.floor(windowMs / 1000)
      if (seconds === 0) return counters.add(key, points, windowMs, block)
      const counted = await counters.run(script, key, [points, seconds, limiter.points, limiter.duration].map(String))
      const restartMs = block && blockMs(block, counted.hits, points)
      if (restartMs === undefined) return counted
      await counters.set(key, counted.hits, restartMs)
      return { hits: counted.hits, leftMs: restartMs }
    },
    set: (key, points, windowMs) => counters.set(key, points, windowMs),
    get: (key) => counters.get(key),
    delete: (key) => counters.delete(key),
    close: () => counters.close(),
  }
}
