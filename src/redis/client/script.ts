import type { RedisConnection } from './connection.js'
import { isNoScript } from './connection-errors.js'

/**
 * A script that servers know by its digest. One that has forgotten it, after a restart or a flush, is sent the text once,
 * with the first call that finds out. All others wait for that one and then go by the digest again, in their order.
 */
export class Script {
  readonly #text: string
  readonly #sha: string
  /** By where the call goes: texts that are on their way. */
  readonly #teaching = new Map<number, Promise<unknown>>()

  constructor(text: string, sha: string) {
    this.#text = text
    this.#sha = sha
  }

  /** `route` is the same for calls that go to the same node. The script must name at least one key. Its strings are buffers. */
  async run(
    connection: Pick<RedisConnection, 'call'>,
    route: number,
    keys: readonly string[],
    args: readonly (string | Buffer)[],
  ): Promise<unknown> {
    const send = (command: string, script: string): Promise<unknown> =>
      connection.call(keys[0] as string, [command, script, String(keys.length), ...keys, ...args], true)
    for (;;) {
      const teaching = this.#teaching.get(route)
      if (teaching !== undefined) await teaching.catch(() => {})
      try {
        return await send('EVALSHA', this.#sha)
      } catch (error) {
        if (!isNoScript(error)) throw error
      }
      // Comes to an end: each time round, somebody else has sent the text, and is done with it.
      if (!this.#teaching.has(route)) return this.#teach(route, send)
    }
  }

  async #teach(route: number, send: (command: string, script: string) => Promise<unknown>): Promise<unknown> {
    const sent = send('EVAL', this.#text)
    this.#teaching.set(route, sent)
    try {
      return await sent
    } finally {
      if (this.#teaching.get(route) === sent) this.#teaching.delete(route)
    }
  }
}
