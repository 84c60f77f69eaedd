import type { Encoded, RecordSource } from '../records/record-source.js'
import { commandIssue } from './issue.js'
import type { Command, CommandWriter } from './writer.js'

/** Reads commands from an iterable. The line of a command is its number. */
export class CommandSource implements RecordSource {
  line = 0
  readonly #now: Iterator<Command> | undefined
  readonly #later: AsyncIterator<Command> | undefined
  readonly #fromLine: number
  #next: IteratorResult<Command> | undefined

  constructor(commands: AsyncIterable<Command> | Iterable<Command>, fromLine = 1) {
    if (Symbol.asyncIterator in commands) this.#later = commands[Symbol.asyncIterator]()
    else this.#now = commands[Symbol.iterator]()
    this.#fromLine = fromLine
  }

  next(out: CommandWriter): Encoded | undefined {
    const step = this.#now === undefined ? this.#next : this.#now.next()
    if (step === undefined || step.done) return undefined
    this.#next = undefined
    this.line++
    if (this.line < this.#fromLine) return 'nothing'
    const problem = commandIssue(step.value)
    if (problem !== undefined) return { issue: problem }
    out.addCommand(step.value)
    return 'written'
  }

  async more(): Promise<boolean> {
    this.#next = await this.#later?.next()
    return this.#next !== undefined && !this.#next.done
  }
}
