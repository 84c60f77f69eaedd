import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { plainCommands } from '../commands/plain-commands.js'
import { parseTemplate } from '../commands/template.js'
import { CommandWriter, encodeCommand } from '../commands/writer.js'
import { csvRecords } from './csv-records.js'
import { jsonRecords } from './json-records.js'
import type { RecordFormat } from './record-source.js'
import { TextRecords } from './text-records.js'

interface Outcome {
  readonly line: number
  /** The encoded command or the error. */
  readonly command: string
}

async function* chunksOf(text: string | Buffer, size: number): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function read(text: string | Buffer, format: RecordFormat, fromLine = 1, size = 7): Promise<Outcome[]> {
  const records = new TextRecords(chunksOf(text, size), format, { fromLine })
  const outcomes: Outcome[] = []
  const out = new CommandWriter()
  do
    for (let encoded = records.next(out); encoded !== undefined; encoded = records.next(out)) {
      if (encoded === 'nothing') continue
      const command = typeof encoded === 'object' ? encoded.issue : out.take().toString('latin1')
      outcomes.push({ line: records.line, command })
    }
  while (await records.more())
  return outcomes
}

const written = (line: number, ...command: (string | Buffer)[]): Outcome => ({
  line,
  command: encodeCommand(command).toString('latin1'),
})

describe('plain commands', () => {
  it('are split like redis-cli input', async () => {
    const text = [
      'SET a 1',
      '',
      '  SET\tb   "hello world"  ',
      '# SET not this',
      "SET c 'it\\'s \\n'",
      'SET d "\\x00\\xff\\n\\"\\\\\\q"',
      'SET e ""',
      'SET f 서울\r',
      'SET pre"fix" x',
    ].join('\n')
    expect(await read(text, plainCommands())).toEqual([
      written(1, 'SET', 'a', '1'),
      written(3, 'SET', 'b', 'hello world'),
      written(5, 'SET', 'c', "it's \\n"),
      written(6, 'SET', 'd', Buffer.from([0, 255, 10, 34, 92, 113])),
      written(7, 'SET', 'e', ''),
      written(8, 'SET', 'f', '서울'),
      written(9, 'SET', 'prefix', 'x'),
    ])
  })

  it.each(['SET a "x', "SET a 'x", 'SET a "x"y', 'SET a "x\\"'])(
    'reports %s as an invalid record and continues',
    async (line) => {
      expect(await read(`GET a\n${line}\nGET b\n`, plainCommands())).toEqual([
        written(1, 'GET', 'a'),
        { line: 2, command: 'a quote is not closed, or is not followed by a space' },
        written(3, 'GET', 'b'),
      ])
    },
  )

  it('start at fromLine and do not depend on chunk boundaries', async () => {
    const text = '\uFEFFSET a 1\nSET b 2\nSET c 3'
    for (let size = 1; size < 30; size++) {
      expect(await read(text, plainCommands(), 2, size)).toEqual([
        written(2, 'SET', 'b', '2'),
        written(3, 'SET', 'c', '3'),
      ])
      expect((await read(text, plainCommands(), 1, size))[0]).toEqual(written(1, 'SET', 'a', '1'))
    }
  })
})

it('removes a byte order mark only at the start of the input, regardless of chunk boundaries', async () => {
  for (let size = 1; size < 20; size++)
    expect(await read('\n\uFEFFSET a 1\n', plainCommands(), 1, size)).toEqual([written(2, '\uFEFFSET', 'a', '1')])
})

describe('CSV', () => {
  const template = parseTemplate('SET user:<id> "<name>, <tier>"')

  it('takes the column names from the first line, in any order', async () => {
    const text = 'tier,id,name\r\ngold,7,ann\r\n"plain ""old""",8,"two\nlines, here"\n,9,\n'
    expect(await read(text, csvRecords(template))).toEqual([
      written(2, 'SET', 'user:7', 'ann, gold'),
      written(3, 'SET', 'user:8', 'two\nlines, here, plain "old"'),
      written(5, 'SET', 'user:9', ', '),
    ])
  })

  it('reports invalid records and continues', async () => {
    const text = 'id,name,tier\n1,a\n2,b,c,d\n3,"x"y,z\n4,"x",z\n\n5,5" disc,""\n'
    expect(await read(text, csvRecords(template))).toEqual([
      { line: 2, command: 'expected 3 columns; received 2' },
      { line: 3, command: 'expected 3 columns; received 4' },
      { line: 4, command: 'a quoted field is not followed by the delimiter' },
      written(5, 'SET', 'user:4', 'x, z'),
      written(7, 'SET', 'user:5', '5" disc, '),
    ])
    expect(await read('id,name,tier\n1,"a,b', csvRecords(template))).toEqual([
      { line: 2, command: 'a quoted field is not closed' },
    ])
  })

  it('supports column numbers, other delimiters and records that are commands', async () => {
    expect(await read('7;ann\n8;bob\n', csvRecords(parseTemplate('SET user:<1> <2>'), ';'))).toEqual([
      written(1, 'SET', 'user:7', 'ann'),
      written(2, 'SET', 'user:8', 'bob'),
    ])
    expect(await read('SET,a,"1,2"\n', csvRecords(undefined))).toEqual([written(1, 'SET', 'a', '1,2')])
  })

  it('reads the column names even if it starts at a later line', async () => {
    expect(await read('id,name,tier\n1,a,b\n2,c,d\n', csvRecords(template), 3)).toEqual([
      written(3, 'SET', 'user:2', 'c, d'),
    ])
    expect(await read('SET,a,1\nSET,b,2\n', csvRecords(undefined), 2)).toEqual([written(2, 'SET', 'b', '2')])
  })

  it('rejects a header that lacks a column of the template, and an invalid delimiter', async () => {
    await expect(read('id,nam,tier\n1,a,b\n', csvRecords(template))).rejects.toMatchObject({
      code: 'FLUXGATE_BULK_INPUT_INVALID',
      message:
        'The first line has no column name; its columns are id, nam, tier. Change the command template or the first line.',
    })
    expect(() => csvRecords(undefined, ', ')).toThrow(
      'delimiter must be one ASCII character such as , ; or a tab, but no quote or line end; received ", ".',
    )
  })

  it('restores any quoted field regardless of chunk boundaries', async () => {
    const field = fc.string({ unit: fc.constantFrom('a', '"', ',', '\n', '\r', ' ', '서'), maxLength: 6 })
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(field, field), { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 1, max: 20 }),
        async (rows, size) => {
          const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`
          const text = rows.map((row) => `${row.map(quoted).join(',')}\n`).join('')
          const read1 = await read(text, csvRecords(parseTemplate('SET <1> <2>')), 1, size)
          expect(read1.map(({ command }) => command)).toEqual(
            rows.map(([key, value]) => encodeCommand(['SET', key, value]).toString('latin1')),
          )
        },
      ),
      { numRuns: 300 },
    )
  })
})

describe('JSON lines', () => {
  const template = parseTemplate('HSET u:<id> city <address.city> tags <tags>')

  it('are objects with fields at any depth, or commands', async () => {
    const text = [
      '{"id": 7, "address": {"city": "서울"}, "tags": ["a", 1]}',
      '',
      '["SET", "k", 5, true]',
      '{"id": 1.5, "address.city": "x", "tags": ""}',
    ].join('\n')
    expect(await read(text, jsonRecords(template))).toEqual([
      written(1, 'HSET', 'u:7', 'city', '서울', 'tags', '["a",1]'),
      written(3, 'SET', 'k', '5', 'true'),
      written(4, 'HSET', 'u:1.5', 'city', 'x', 'tags', ''),
    ])
  })

  it('report invalid records and continue', async () => {
    const text = '{"id": 1}\n{broken\n7\n[]\n["GET", null]\n["GET", "a"]\n'
    const outcomes = await read(text, jsonRecords(template))
    expect(outcomes.map(({ command }) => command.replace(/invalid JSON: .*/, 'invalid JSON'))).toEqual([
      'the field address.city is missing or null',
      'invalid JSON',
      'a record must be an object or an array',
      'a command must be a non-empty array without null',
      'a command must be a non-empty array without null',
      written(6, 'GET', 'a').command,
    ])
    expect(await read('{"a": 1}\n', jsonRecords(undefined))).toMatchObject([{ line: 1 }])
  })

  it('do not read inherited properties', async () => {
    const outcomes = await read('{"id": 1}\n', jsonRecords(parseTemplate('SET a <constructor.name>')))
    expect(outcomes).toEqual([{ line: 1, command: 'the field constructor.name is missing or null' }])
  })
})

describe('parseTemplate', () => {
  it('supports hash tags and a literal <', async () => {
    const template = parseTemplate('SET {user:<id>}:n "<<b> <id>"')
    expect(await read('id\n7\n', csvRecords(template))).toEqual([written(2, 'SET', '{user:7}:n', '<b> 7')])
  })

  it.each([
    ['', 'it is empty'],
    ['PING', 'it has no <name> placeholder'],
    ['<name> x', 'the command name must not be a placeholder'],
    ['SET a <id', 'a < does not start a <name> placeholder'],
    ['SET a "<id>', 'a quote is not closed'],
  ])('rejects %j', (text, message) => {
    expect(() => parseTemplate(text)).toThrow(`command is invalid: ${message}`)
  })
})
