import { type CommandTemplate, type FieldValues, writeTemplate } from '../commands/template.js'
import type { CommandWriter } from '../commands/writer.js'
import type { Encoded, RecordFormat } from './record-source.js'

/** JSON lines: objects whose fields a template uses (`<address.city>` for a nested field), or commands as arrays. */
export function jsonRecords(template: CommandTemplate | undefined): RecordFormat {
  const values = new Texts()
  return {
    encode(bytes, from, to, out) {
      const text = bytes.toString('utf8', from, to).trim()
      if (text === '') return 'nothing'
      let record: unknown
      try {
        record = JSON.parse(text)
      } catch (error) {
        return { issue: `invalid JSON: ${(error as Error).message}` }
      }
      if (Array.isArray(record)) return writeList(record, out)
      if (template === undefined)
        return { issue: 'without a command template, a record must be an array such as ["SET", "key", "value"]' }
      if (typeof record !== 'object' || record === null) return { issue: 'a record must be an object or an array' }
      values.texts.length = 0
      for (const name of template.names) {
        const value = textOf(fieldOf(record, name))
        if (value === undefined) return { issue: `the field ${name} is missing or null` }
        values.texts.push(Buffer.from(value))
      }
      writeTemplate(template, values, out)
      return 'written'
    },
  }
}

function writeList(record: readonly unknown[], out: CommandWriter): Encoded {
  const words = record.map(textOf)
  if (words.length === 0 || words.includes(undefined))
    return { issue: 'a command must be a non-empty array without null' }
  out.addCommand(words as string[])
  return 'written'
}

class Texts implements FieldValues {
  readonly texts: Buffer[] = []

  sourceOf(index: number): Buffer {
    return this.texts[index] as Buffer
  }

  startOf(): number {
    return 0
  }

  endOf(index: number): number {
    return this.sourceOf(index).length
  }
}

function fieldOf(record: object, name: string): unknown {
  if (Object.hasOwn(record, name)) return record[name as keyof typeof record]
  let value: unknown = record
  for (const part of name.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined
    value = value[part as keyof typeof value]
  }
  return value
}

/** Converts a value to text: objects and arrays as JSON. Null counts as missing. */
function textOf(value: unknown): string | undefined {
  if (value === null || value === undefined) return undefined
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
