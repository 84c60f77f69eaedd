import { createHash } from 'node:crypto'
import { FluxGateError } from '../../core/errors.js'
import type { RedisConnection } from '../client/connection.js'
import { wrapRedisError } from '../client/errors.js'
import { hashSlot } from '../client/hash-slot.js'
import { Script } from '../client/script.js'
import type { RunGuarded } from './hold.js'
import { invalid } from './options.js'
import type { RedisLockBackend } from './redis-backend.js'

/** A Lua script that Redis runs only while the hold still owns its locks. Create it once and reuse it. */
export interface GuardedScript {
  /** The script with its guard. */
  readonly script: Script
}

/** Checks the locks and removes their entries from KEYS and ARGV, so that the caller's script sees only its own. */
const guard = `for _ = 1, tonumber(table.remove(ARGV, 1)) do
if redis.call('GET', table.remove(KEYS, 1)) ~= table.remove(ARGV, 1) then
return redis.error_reply('FENCED the lock is held by another owner')
end
end
`

/**
 * Prepares a Lua script for `Hold.run`.
 *
 * @param lua - The source of a Redis script, which uses its own KEYS and ARGV.
 * @throws `FLUXGATE_ARGUMENT_INVALID` if the source is empty or not a string.
 *
 * @example
 * ```ts
 * const setTotal = guardedScript("return redis.call('SET', KEYS[1], ARGV[1])")
 * await hold.run(setTotal, { keys: ['total:{orders}'], args: [42] })
 * ```
 */
export function guardedScript(lua: string): GuardedScript {
  if (typeof lua !== 'string' || lua === '')
    throw invalid('guardedScript must receive the source of a Lua script as a non-empty string.')
  const source = guard + lua
  return { script: new Script({ sha: createHash('sha1').update(source).digest('hex'), source }) }
}

export function runGuarded(connection: RedisConnection, locks: RedisLockBackend): RunGuarded {
  return async (hold, { script }, keys, args) => {
    const all = hold.names.map((name) => locks.keysOf(name))
    const slot = hashSlot(keys[0] ?? all[0]?.held ?? '')
    const guards = connection.isCluster ? all.filter((lock) => lock.slot === slot) : all
    if (guards.length === 0)
      throw invalid(
        `The key ${keys[0]} must be in the same cluster slot as a lock of this hold. Use the same hash tag.`,
      )
    const values = guards.map(({ name }) => `${hold.fenceOf(name)}:${hold.owner}`)
    try {
      const reply = await script.run(
        connection,
        connection.isCluster ? slot : 0,
        [...guards.map(({ held }) => held), ...keys],
        [guards.length, ...values, ...args].map(String),
      )
      return textOf(reply)
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith('FENCED')))
        throw wrapRedisError(error, 'run a guarded script', 'The lock')
      hold.lose()
      throw new FluxGateError('FLUXGATE_LOCK_LOST', 'The lock is held by another owner. The script was not run.')
    }
  }
}

const textOf = (reply: unknown): unknown =>
  Array.isArray(reply) ? reply.map(textOf) : reply instanceof Buffer ? reply.toString() : reply
