import { loadConfig } from '../../../config/config.js'
import { redisSettings } from '../../../config/store.js'
import type { RedisOptions } from '../../../redis/client/open/target.js'

/** The Redis to load into: `--redis`, the configured store, or redis://127.0.0.1:6379, in this order. */
export async function redisOf(options: { redis?: string; config?: string }): Promise<RedisOptions> {
  if (options.redis !== undefined) return { uri: options.redis }
  const { store } = await loadConfig({ path: options.config, env: process.env, cwd: process.cwd() })
  return redisSettings(store) ?? { uri: 'redis://127.0.0.1:6379' }
}
