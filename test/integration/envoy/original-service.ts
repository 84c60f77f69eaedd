/** envoyproxy/ratelimit with its own Redis, to compare FluxGate with the original. */
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { program } from '../../../bench/services/install.mjs'
import { eventually } from '../../fixtures/eventually.js'
import { freePort } from '../../servers/free-port.js'
import { launchGuarded } from '../../servers/guarded-process.js'
import { startRedis } from '../../servers/redis-server.js'
import { clientOf, type RateLimitClient, statusOf } from './rate-limit-client.js'

const found = await program('ratelimit', false)

/** The program; undefined if it is not installed. */
export const originalProgram = 'file' in found ? found.file : undefined

if (originalProgram === undefined)
  process.stderr.write('Skipping the tests with envoyproxy/ratelimit: run node bench/services/install.mjs.\n')

/** Starts it with these configurations, one per domain. Stops after the test. */
export async function startOriginal(configs: readonly string[]): Promise<RateLimitClient> {
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  const directory = mkdtempSync(join(tmpdir(), 'fluxgate-ratelimit-'))
  mkdirSync(join(directory, 'ratelimit', 'config'), { recursive: true })
  for (const [i, config] of configs.entries())
    writeFileSync(join(directory, 'ratelimit', 'config', `${i}.yaml`), config)
  const [port, grpcPort, debugPort] = [await freePort(), await freePort(), await freePort()]
  const settings = {
    HOST: '127.0.0.1',
    PORT: port,
    GRPC_HOST: '127.0.0.1',
    GRPC_PORT: grpcPort,
    DEBUG_HOST: '127.0.0.1',
    DEBUG_PORT: debugPort,
    LOG_LEVEL: 'error',
    USE_STATSD: 'false',
    DISABLE_STATS: 'true',
    RUNTIME_ROOT: directory,
    RUNTIME_SUBDIRECTORY: 'ratelimit',
    RUNTIME_WATCH_ROOT: 'false',
    BACKEND_TYPE: 'redis',
    REDIS_SOCKET_TYPE: 'tcp',
    REDIS_URL: `127.0.0.1:${redis.port}`,
  }
  const environment = Object.entries(settings).map(([name, value]) => `${name}=${value}`)
  const service = await launchGuarded(['env', ...environment, originalProgram as string], directory)
  onTestFinished(() => service.end('remove'))
  const client = clientOf(grpcPort)
  await eventually('envoyproxy/ratelimit to answer', async () => {
    if (!service.isRunning()) throw new Error(`It exited: ${service.output()}`)
    const status = await statusOf(client.ask('none', [{ entries: [{ key: 'a', value: 'b' }] }]))
    return status === 'OK'
  })
  return client
}
