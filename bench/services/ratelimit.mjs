// @ts-check
/** envoyproxy/ratelimit with its own Redis. */
import { startServer } from '../redis/server.mjs'
import { freePort, spawned } from './spawned.mjs'

/**
 * Tuned as its documentation advises: writes to Redis are buffered for 150 µs and the connection pool is larger than its
 * default; statistics are off.
 *
 * @param {string} file path of the program
 * @param {string} limits its configuration, as YAML
 */
export async function startRatelimit(file, limits) {
  const redis = await startServer()
  const [port, grpcPort, debugPort] = [await freePort(), await freePort(), await freePort()]
  const service = await spawned(file, {
    port,
    env: (directory) => ({
      HOST: '127.0.0.1',
      PORT: String(port),
      GRPC_HOST: '127.0.0.1',
      GRPC_PORT: String(grpcPort),
      DEBUG_HOST: '127.0.0.1',
      DEBUG_PORT: String(debugPort),
      LOG_LEVEL: 'error',
      USE_STATSD: 'false',
      DISABLE_STATS: 'true',
      RUNTIME_ROOT: directory,
      RUNTIME_SUBDIRECTORY: 'ratelimit',
      RUNTIME_WATCH_ROOT: 'false',
      BACKEND_TYPE: 'redis',
      REDIS_SOCKET_TYPE: 'tcp',
      REDIS_URL: `127.0.0.1:${redis.port}`,
      REDIS_POOL_SIZE: '20',
      REDIS_PIPELINE_WINDOW: '150us',
    }),
    files: () => ({ 'ratelimit/config/bench.yaml': limits }),
  })
  return {
    port,
    grpcPort,
    pids: [service.pid, redis.pid],
    stopRedis: () => redis.stop(),
    async stop() {
      service.stop()
      await redis.stop()
    },
  }
}
