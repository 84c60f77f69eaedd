import type { RedisConnection } from '../client/connection.js'
import { integerReply } from '../client/replies.js'
import { Script } from '../client/script.js'
import { type Busy, type Claim, fenceMs, type Granted, type Keeper, placeMs } from './keeper.js'
import { type LockKeys, lockKeys } from './lock-keys.js'
import {
  semaphoreAcquireScript,
  semaphoreAcquireSha,
  semaphoreExtendScript,
  semaphoreExtendSha,
  semaphoreReleaseScript,
  semaphoreReleaseSha,
} from './lua/scripts.generated.js'
import { outcomeOf } from './redis-locks.js'

/** Semaphores on one Redis deployment. Each permit has its own lease, which expires by the clock of the server. */
export class SemaphorePermits implements Keeper {
  readonly #connection: RedisConnection
  readonly #prefix: string
  readonly #permits: number
  readonly #acquire = new Script(semaphoreAcquireScript, semaphoreAcquireSha)
  readonly #extend = new Script(semaphoreExtendScript, semaphoreExtendSha)
  readonly #release = new Script(semaphoreReleaseScript, semaphoreReleaseSha)

  constructor(connection: RedisConnection, prefix: string, permits: number) {
    this.#connection = connection
    this.#prefix = prefix
    this.#permits = permits
  }

  async grant(claim: Claim): Promise<Granted | Busy> {
    const keys = this.#keysOf(claim)
    const { held, fence, queue, places } = keys
    const args = [claim.id, claim.ttlMs, fenceMs, claim.fair ? placeMs : 0, this.#permits]
    return outcomeOf(await this.#run(this.#acquire, keys, [held, fence, queue, places], args), [keys])
  }

  async extend(claim: Claim): Promise<boolean> {
    const keys = this.#keysOf(claim)
    return integerReply(await this.#run(this.#extend, keys, [keys.held], [claim.id, claim.ttlMs])) === 1
  }

  async release(claim: Claim): Promise<boolean> {
    const keys = this.#keysOf(claim)
    const { held, queue, places, channel } = keys
    return integerReply(await this.#run(this.#release, keys, [held, queue, places], [claim.id, channel])) === 1
  }

  #keysOf({ names }: Claim): LockKeys {
    return lockKeys(this.#prefix, names[0] as string, 'semaphore')
  }

  #run(script: Script, { slot }: LockKeys, keys: readonly string[], args: readonly (string | number)[]) {
    return script.run(this.#connection, this.#connection.isCluster ? slot : 0, keys, args.map(String))
  }
}
