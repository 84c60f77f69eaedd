import type { RedisConnection } from '../client/connection.js'
import { integerReply } from '../client/replies.js'
import { Script } from '../client/script.js'
import { type Denied, fenceMs, type Granted, type LockBackend, type LockRequest, queueSlotMs } from './backend.js'
import { type LockKeys, lockKeys } from './keys.js'
import { semaphoreAcquireScript, semaphoreExtendScript, semaphoreReleaseScript } from './lua/scripts.generated.js'
import { parseOutcome } from './redis-backend.js'

/** Semaphores on one Redis deployment. Each permit has its own lease, which expires by the clock of the server. */
export class SemaphoreBackend implements LockBackend {
  readonly #connection: RedisConnection
  readonly #prefix: string
  readonly #permits: number
  readonly #acquire = new Script(semaphoreAcquireScript)
  readonly #extend = new Script(semaphoreExtendScript)
  readonly #release = new Script(semaphoreReleaseScript)

  constructor(connection: RedisConnection, prefix: string, permits: number) {
    this.#connection = connection
    this.#prefix = prefix
    this.#permits = permits
  }

  async grant(request: LockRequest): Promise<Granted | Denied> {
    const keys = this.#keysOf(request)
    const { held, fence, queue, queueExpiry } = keys
    const args = [request.id, request.ttlMs, fenceMs, request.fair ? queueSlotMs : 0, this.#permits]
    return parseOutcome(await this.#run(this.#acquire, keys, [held, fence, queue, queueExpiry], args), [keys])
  }

  async extend(request: LockRequest): Promise<boolean> {
    const keys = this.#keysOf(request)
    return integerReply(await this.#run(this.#extend, keys, [keys.held], [request.id, request.ttlMs])) === 1
  }

  async release(request: LockRequest): Promise<boolean> {
    const keys = this.#keysOf(request)
    const { held, queue, queueExpiry, channel } = keys
    return integerReply(await this.#run(this.#release, keys, [held, queue, queueExpiry], [request.id, channel])) === 1
  }

  #keysOf({ names }: LockRequest): LockKeys {
    return lockKeys(this.#prefix, names[0] as string, 'semaphore')
  }

  #run(script: Script, { slot }: LockKeys, keys: readonly string[], args: readonly (string | number)[]) {
    return script.run(this.#connection, this.#connection.isCluster ? slot : 0, keys, args.map(String))
  }
}
