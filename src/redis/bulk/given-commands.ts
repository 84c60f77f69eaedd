import type { Command, CommandWriter } from './command-writer.js'
import type { Encoded, RecordSource } from './record-source.js'

/** Commands that a program makes one after the other; their lines are their numbers. */
export class GivenCommands implements RecordSource {
  line = 0
  readonly #now: Iterator<Command> | undefined
  readonly #later: AsyncIterator<Command> | undefined
  readonly #fromLine: number
  #next: Command | undefined

  constructor(commands: AsyncIterable<Command> | Iterable<Command>, fromLine = 1) {
    if (Symbol.asyncIterator in commands) this.#later = commands[Symbol.asyncIterator]()
    else this.#now = commands[Symbol.iterator]()
    this.#fromLine = fromLine
  }

  next(out: CommandWriter): Encoded | undefined {
    const command = this.#now === undefined ? this.#next : pull(this.#now)
    if (command === undefined) return undefined
    this.#next = undefined
    this.line++
    if (this.line < this.#fromLine) return 'nothing'
    if (command.length === 0) return { mistake: 'a command has at least a name' }
    out.addCommand(command)
    return 'written'
  }

  async more(): Promise<boolean> {
    const next = await this.#later?.next()
    if (next === undefined || next.done) return false
    this.#next = next.value
    return true
  }
}

function pull(commands: Iterator<Command>): Command | undefined {
  const { done, value } = commands.next()
  return done ? undefined : value
}
