import { FluxGateError } from '../../../core/errors.js'
import { Fields } from '../records/fields.js'
import { splitArguments } from './plain-commands.js'
import type { CommandWriter } from './writer.js'

/** Literal bytes, or the index of a field in `names`. */
type Part = Buffer | number

/** A command with `<name>` placeholders, which are replaced with the fields of each record. */
export interface CommandTemplate {
  /** The distinct names of the placeholders. */
  readonly names: readonly string[]
  readonly words: readonly (readonly Part[])[]
}

/** Parses a template such as `HSET user:<id> name <name>`. `<<` is a literal `<`. */
export function parseTemplate(text: string): CommandTemplate {
  const bytes = Buffer.from(text)
  const fields = new Fields()
  const problem = splitArguments(bytes, 0, bytes.length, fields)
  if (problem !== undefined) throw templateInvalid(problem)
  if (fields.count === 0) throw templateInvalid('it is empty')
  const names: string[] = []
  const words = Array.from({ length: fields.count }, (_, i) => parseWord(fields.text(i), names))
  if (typeof words[0]?.[0] === 'number') throw templateInvalid('the command name must not be a placeholder')
  if (names.length === 0)
    throw templateInvalid('it has no <name> placeholder, so every record would give the same command')
  return { names, words }
}

function parseWord(word: string, names: string[]): Part[] {
  const parts: Part[] = []
  for (const [piece, name] of word.matchAll(/<<|<([^<>]+)>|[^<]+|</g)) {
    if (name !== undefined) {
      if (!names.includes(name)) names.push(name)
      parts.push(names.indexOf(name))
    } else if (piece === '<') throw templateInvalid('a < does not start a <name> placeholder; write << for a literal <')
    else parts.push(Buffer.from(piece === '<<' ? '<' : piece))
  }
  // An empty argument ("") has no parts.
  return parts.length === 0 ? [Buffer.alloc(0)] : parts
}

/** Locates the value of each field. */
export interface FieldValues {
  sourceOf(index: number): Buffer
  startOf(index: number): number
  endOf(index: number): number
}

export function writeTemplate({ words }: CommandTemplate, values: FieldValues, out: CommandWriter): void {
  out.begin(words.length)
  for (const word of words) {
    const [first] = word
    if (word.length === 1 && typeof first === 'number')
      out.add(values.sourceOf(first), values.startOf(first), values.endOf(first))
    else if (word.length === 1) out.add(first as Buffer)
    else writeParts(word, values, out)
  }
}

function writeParts(word: readonly Part[], values: FieldValues, out: CommandWriter): void {
  let size = 0
  for (const part of word) size += typeof part === 'number' ? values.endOf(part) - values.startOf(part) : part.length
  out.open(size)
  for (const part of word)
    if (typeof part === 'number') out.append(values.sourceOf(part), values.startOf(part), values.endOf(part))
    else out.append(part)
  out.close()
}

const templateInvalid = (problem: string): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_ARGUMENT_INVALID',
    `command is invalid: ${problem}. Use a command with <name> placeholders, such as SET user:<id> <name>.`,
  )
