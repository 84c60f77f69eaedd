import type { RedisConnection } from './connection.js'
import { isNoScript } from './errors.js'

/** The source of a script and its SHA-1 digest. */
export interface LuaSource {
  readonly sha: string
  readonly source: string
}

/**
 * A Lua script that is called by its SHA-1 digest. If a server does not have the script, such as after a restart or a
 * flush, the first call that fails sends the source once. Other calls wait for it and then use the digest again, in order.
 */
export class Script {
  readonly #lua: LuaSource
  /** Pending EVAL calls by route. */
  readonly #loading = new Map<number, Promise<unknown>>()

  constructor(lua: LuaSource) {
    this.#lua = lua
  }

  /**
   * Runs the script. `route` is the same for calls to the same node. The script needs at least one key. Strings in the reply
   * are buffers.
   */
  async run(
    connection: Pick<RedisConnection, 'call'>,
    route: number,
    keys: readonly string[],
    args: readonly (string | Buffer)[],
  ): Promise<unknown> {
    // A copy per attempt would take as long as encoding the command.
    const command = ['EVALSHA', this.#lua.sha, String(keys.length)] as (string | Buffer)[]
    for (let i = 0; i < keys.length; i++) command.push(keys[i] as string)
    for (let i = 0; i < args.length; i++) command.push(args[i] as string | Buffer)
    for (;;) {
      const loading = this.#loading.get(route)
      if (loading !== undefined) await loading.catch(() => {})
      try {
        return await connection.call(keys[0] as string, command, true)
      } catch (error) {
        if (!isNoScript(error)) throw error
      }
      // The loop ends: each iteration means that another call has sent the source and finished.
      if (!this.#loading.has(route)) {
        const load = ['EVAL', this.#lua.source, ...command.slice(2)]
        return this.#load(route, connection.call(keys[0] as string, load, true))
      }
    }
  }

  async #load(route: number, sent: Promise<unknown>): Promise<unknown> {
    this.#loading.set(route, sent)
    try {
      return await sent
    } finally {
      if (this.#loading.get(route) === sent) this.#loading.delete(route)
    }
  }
}
