// @ts-check
/** EXACT decisions in Redis: one server for both builds, a new process for each measurement. */
import { startChild } from '../child.mjs'
import { startServer } from '../redis/server.mjs'

/** @returns {Promise<import('./pairs.mjs').Area>} */
export async function redisArea() {
  const server = await startServer()
  return {
    async measure(root) {
      await server.call('FLUSHALL')
      const { stop, heard } = startChild(new URL('redis-child.mjs', import.meta.url), [root.href, server.uri])
      try {
        return await heard()
      } finally {
        stop()
      }
    },
    stop: () => server.stop(),
  }
}
