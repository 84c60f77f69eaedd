import type { CommandWriter } from '../commands/writer.js'

/** A single invalid record. The load continues with the next one. */
export interface RecordIssue {
  readonly issue: string
}

/**
 * The outcome of one step. `nothing`: an empty line, a comment, a header, or a record before the first requested line.
 * `held`: the record will be written together with others. `rest`: not a record, but a command of held records.
 */
export type Encoded = 'written' | 'held' | 'rest' | 'nothing' | RecordIssue

/** A source of records. Buffered records are read synchronously, because a promise per record would dominate the cost. */
export interface RecordSource {
  /** The line where the last record starts, counted from 1. */
  readonly line: number
  /** Writes the next record as a command. Returns `undefined` if no record is buffered. */
  next(out: CommandWriter): Encoded | undefined
  /** Waits for more input. Resolves with false at the end. */
  more(): Promise<boolean>
}

/** Parses the records of one format. */
export interface RecordFormat {
  /** The end of the record before its line end, or -1 if these bytes do not contain it. Default: the next line end. */
  endOf?(bytes: Buffer, from: number, to: number): number
  encode(bytes: Buffer, from: number, to: number, out: CommandWriter): Encoded
  /** For formats that hold records: writes a command of held records at the end of the input. False if none are left. */
  rest?(out: CommandWriter): boolean
}
