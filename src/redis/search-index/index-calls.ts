import { FluxGateError } from '../../core/errors.js'
import type { RedisConnection } from '../connection.js'
import { wrapRedisError } from '../connection-errors.js'
import { hashSlot } from '../hash-slot.js'
import { Script } from '../script.js'
import type { ReadDefinition } from './definition.js'
import {
  editScript,
  editSha,
  pageScript,
  pageSha,
  readScript,
  readSha,
  suggestScript,
  suggestSha,
  turnScript,
  turnSha,
} from './scripts.generated.js'

const who = 'The search index'

type ScriptName = 'edit' | 'page' | 'suggest' | 'read' | 'turn'
export type Reply = number | Buffer | null | readonly (number | Buffer)[]

/** Everything that is asked of Redis about one index, whose names all share a hash tag. */
export class IndexCalls {
  readonly definition: ReadDefinition
  readonly #connection: RedisConnection
  readonly #base: string
  readonly #slot: number
  readonly #timeoutMs: number
  readonly #scripts = {
    edit: new Script(editScript, editSha),
    page: new Script(pageScript, pageSha),
    suggest: new Script(suggestScript, suggestSha),
    read: new Script(readScript, readSha),
    turn: new Script(turnScript, turnSha),
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

  async run(script: ScriptName, what: string, args: readonly (string | Buffer)[]): Promise<Reply> {
    const keys = [this.name('meta'), this.name('records')]
    const all = [this.definition.fingerprint, ...args]
    const reply = await this.#bounded(what, () => this.#scripts[script].run(this.#connection, this.#slot, keys, all))
    if (reply instanceof Buffer && reply.toString() === 'CHANGED') throw changed(this.definition.name)
    if (reply instanceof Buffer && reply.toString() === 'REBUILDING') throw rebuilding(this.definition.name)
    return reply as Reply
  }

  /** A command about one of the names; strings are buffers. */
  async command(name: string, [command = '', ...args]: readonly string[]): Promise<unknown> {
    const key = this.name(name)
    return this.#bounded('be read', () => this.#connection.call(key, [command, key, ...args], true))
  }

  async #bounded(what: string, ask: () => Promise<unknown>): Promise<unknown> {
    let timer: NodeJS.Timeout | undefined
    const tooLate = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(timedOut(what, this.#timeoutMs)), this.#timeoutMs)
    })
    try {
      return await Promise.race([ask(), tooLate])
    } catch (error) {
      throw wrapRedisError(error, what, who)
    } finally {
      clearTimeout(timer)
    }
  }

  close(): Promise<void> {
    return this.#connection.close()
  }
}

const timedOut = (what: string, timeoutMs: number): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_STORE_TIMEOUT',
    `${who} was asked to ${what} and Redis had not answered after ${timeoutMs} ms; it may still happen.`,
  )

const changed = (name: string): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_INDEX_CHANGED',
    `The search index "${name}" was made with other fields than those given here: use the same ones everywhere, or call rebuild().`,
  )

const rebuilding = (name: string): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_INDEX_CHANGED',
    `The search index "${name}" is being rebuilt: ask again later, or call rebuild() if whoever began it is gone.`,
  )
