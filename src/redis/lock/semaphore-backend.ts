import type { RedisConnection } from '../client/connection.js'
import { integerReply } from '../client/replies.js'
import { Script } from '../client/script.js'
import { fenceMs, type LockBackend, type LockRequest, queueSlotMs } from './backend.js'
import { type LockKeys, lockKeys } from './keys.js'
import { semaphoreAcquireScript, semaphoreExtendScript, semaphoreReleaseScript } from './lua/scripts.generated.js'
import { parseOutcome } from './redis-backend.js'

/** Semaphores on one Redis deployment. Each permit has its own lease, which expires by the clock of the server. */
export function semaphoreBackend(connection: RedisConnection, prefix: string, permits: number): LockBackend {
  const acquire = new Script(semaphoreAcquireScript)
  const extend = new Script(semaphoreExtendScript)
  const release = new Script(semaphoreReleaseScript)
  const keysOf = ({ names }: LockRequest): LockKeys => lockKeys(prefix, names[0] as string, 'semaphore')
  const run = (script: Script, { slot }: LockKeys, keys: readonly string[], args: readonly (string | number)[]) =>
    script.run(connection, connection.isCluster ? slot : 0, keys, args.map(String))
  return {
    async grant(request) {
      const keys = keysOf(request)
      const { held, fence, queue, queueExpiry } = keys
      const args = [request.id, request.ttlMs, fenceMs, request.fair ? queueSlotMs : 0, permits]
      return parseOutcome(await run(acquire, keys, [held, fence, queue, queueExpiry], args), [keys])
    },
    async extend(request) {
      const keys = keysOf(request)
      return integerReply(await run(extend, keys, [keys.held], [request.id, request.ttlMs])) === 1
    },
    async release(request) {
      const keys = keysOf(request)
      const { held, queue, queueExpiry, channel } = keys
      return integerReply(await run(release, keys, [held, queue, queueExpiry], [request.id, channel])) === 1
    },
  }
}
