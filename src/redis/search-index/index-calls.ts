import { FluxGateError } from '../../core/errors.js'
import type { RedisConnection } from '../client/connection.js'
import { hashSlot } from '../client/hash-slot.js'
import { isByteReply, unexpectedReply } from '../client/replies.js'
import { Script } from '../client/script.js'
import { withTimeout } from '../client/with-timeout.js'
import type { ReadDefinition } from './definition.js'
import { editScript, pageScript, readScript, suggestScript, turnScript } from './lua/scripts.generated.js'

type ScriptName = 'edit' | 'page' | 'suggest' | 'read' | 'turn'
export type Reply = number | Buffer | null | readonly (number | Buffer)[]

/** The Redis calls of one index. All of its keys share a hash tag. */
export class IndexCalls {
  readonly definition: ReadDefinition
  readonly #connection: RedisConnection
  readonly #base: string
  readonly #slot: number
  readonly #timeoutMs: number
  readonly #scripts = {
    edit: new Script(editScript),
    page: new Script(pageScript),
    suggest: new Script(suggestScript),
    read: new Script(readScript),
    turn: new Script(turnScript),
  }

  constructor(connection: RedisConnection, prefix: string, definition: ReadDefinition, timeoutMs: number) {
    this.definition = definition
    this.#connection = connection
    this.#base = `${prefix}:{index:${definition.name}}`
    this.#slot = hashSlot(this.#base)
    this.#timeoutMs = timeoutMs
  }

  name(rest: string): string {
    return `${this.#base}:${rest}`
  }

  async run(script: ScriptName, operation: string, args: readonly (string | Buffer)[]): Promise<Reply> {
    const keys = [this.name('meta'), this.name('records')]
    const all = [this.definition.fingerprint, ...args]
    const reply = await this.#ask(operation, () => this.#scripts[script].run(this.#connection, this.#slot, keys, all))
    if (reply instanceof Buffer && reply.toString() === 'CHANGED') throw changed(this.definition.name)
    if (reply instanceof Buffer && reply.toString() === 'REBUILDING') throw rebuilding(this.definition.name)
    return reply as Reply
  }

  /** Runs a command on one of the keys. Strings in the reply are buffers. */
  async command(name: string, [command = '', ...args]: readonly string[]): Promise<unknown> {
    const key = this.name(name)
    return this.#ask('be read', () => this.#connection.call(key, [command, key, ...args], true))
  }

  #ask(operation: string, ask: () => Promise<unknown>): Promise<unknown> {
    return withTimeout({ subject: 'The search index', operation, timeoutMs: this.#timeoutMs }, async () => {
      const reply = await ask()
      if (!isByteReply(reply)) throw unexpectedReply('integers and bytes', reply)
      return reply
    })
  }

  close(): Promise<void> {
    return this.#connection.close()
  }
}

const changed = (name: string): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_INDEX_CHANGED',
    `The search index "${name}" was created with other fields. Use the same definition in all processes, or call rebuild().`,
  )

const rebuilding = (name: string): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_INDEX_CHANGED',
    `The search index "${name}" is being rebuilt. Try again later, or call rebuild() if the process that started it has ended.`,
  )
