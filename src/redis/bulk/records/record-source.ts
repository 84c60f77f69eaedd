import type { CommandWriter } from '../commands/command-writer.js'

/** What is wrong with one record; the others are not concerned. */
export interface RecordMistake {
  readonly mistake: string
}

/**
 * `nothing`: an empty line, a comment, a heading, or a record that was not asked for. `held`: it will be written together with
 * others. `rest`: no record, but a command of such as were held.
 */
export type Encoded = 'written' | 'held' | 'rest' | 'nothing' | RecordMistake

/** Where records come from. What is at hand is read without waiting, because a promise for each would cost more than it does. */
export interface RecordSource {
  /** Where the last record begins, from 1. */
  readonly line: number
  /** Writes the next record as a command; `undefined` if there is none at hand. */
  next(out: CommandWriter): Encoded | undefined
  /** Waits until there is more; false once there never will be. */
  more(): Promise<boolean>
}

/** How one record is spelt. */
export interface RecordFormat {
  /** Where the record ends, before its line end; -1 if that is not among these bytes. Left out: at the next line end. */
  endOf?(bytes: Buffer, from: number, to: number): number
  encode(bytes: Buffer, from: number, to: number, out: CommandWriter): Encoded
  /** If it holds records back: at the end, writes a command of them; false if there is none left. */
  rest?(out: CommandWriter): boolean
}
