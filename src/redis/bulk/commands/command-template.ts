import { FluxGateError } from '../../../core/errors.js'
import { Fields } from '../records/fields.js'
import type { CommandWriter } from './command-writer.js'
import { splitArguments } from './plain-commands.js'

/** Literal bytes, or the place of a field among `names`. */
type Part = Buffer | number

/** What is made of each record: a command in which `<name>` stands for a field. */
export interface CommandTemplate {
  /** The fields that it names, each once. */
  readonly names: readonly string[]
  readonly words: readonly (readonly Part[])[]
}

/** Reads `HSET user:<id> name <name>`; `<<` is a `<` that stands for itself. */
export function parseTemplate(text: string): CommandTemplate {
  const bytes = Buffer.from(text)
  const fields = new Fields()
  const mistake = splitArguments(bytes, 0, bytes.length, fields)
  if (mistake !== undefined) throw templateInvalid(`${mistake}`)
  if (fields.count === 0) throw templateInvalid('there is nothing in it')
  const names: string[] = []
  const words = Array.from({ length: fields.count }, (_, i) => parseWord(fields.text(i), names))
  if (typeof words[0]?.[0] === 'number') throw templateInvalid('the name of the command may not be a field')
  if (names.length === 0) throw templateInvalid('it names no field, so that every record would do the same')
  return { names, words }
}

function parseWord(word: string, names: string[]): Part[] {
  const parts: Part[] = []
  for (const [piece, name] of word.matchAll(/<<|<([^<>]+)>|[^<]+|</g)) {
    if (name !== undefined) {
      if (!names.includes(name)) names.push(name)
      parts.push(names.indexOf(name))
    } else if (piece === '<') throw templateInvalid('a < is not followed by a name and >; << stands for <')
    else parts.push(Buffer.from(piece === '<<' ? '<' : piece))
  }
  // An argument may be empty: "".
  return parts.length === 0 ? [Buffer.alloc(0)] : parts
}

/** Where the value of a field is. */
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

const templateInvalid = (found: string): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_ARGUMENT_INVALID',
    `command: ${found}; allowed: a command in which <name> stands for a field, such as SET user:<id> <name>.`,
  )
