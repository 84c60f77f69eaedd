import { describe, expect, it } from 'vitest'
import { type Command, CommandWriter, encodeCommand } from './writer.js'

const textOf = (command: Command): string => encodeCommand(command).toString('utf8')

describe('encodeCommand', () => {
  it('writes the number of arguments and the length of each in bytes', () => {
    expect(textOf(['SET', 'key', 'value'])).toBe('*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nvalue\r\n')
    expect(textOf(['SET', 'city', '서울'])).toBe('*3\r\n$3\r\nSET\r\n$4\r\ncity\r\n$6\r\n서울\r\n')
    expect(textOf(['SET', 'face', '🙂'])).toBe('*3\r\n$3\r\nSET\r\n$4\r\nface\r\n$4\r\n🙂\r\n')
  })

  it('encodes empty arguments, line ends and arbitrary bytes', () => {
    expect(textOf(['SET', '', 'a\r\n$3\r\nb'])).toBe('*3\r\n$3\r\nSET\r\n$0\r\n\r\n$8\r\na\r\n$3\r\nb\r\n')
    const bytes = Buffer.from([0, 255, 13, 10, 128])
    expect(encodeCommand(['SET', 'k', bytes])).toEqual(
      Buffer.concat([Buffer.from('*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\n'), bytes, Buffer.from('\r\n')]),
    )
  })

  it('encodes numbers as text', () => {
    expect(textOf(['INCRBY', 'n', 15])).toBe('*3\r\n$6\r\nINCRBY\r\n$1\r\nn\r\n$2\r\n15\r\n')
    expect(textOf(['SET', 'n', -1.5])).toBe('*3\r\n$3\r\nSET\r\n$1\r\nn\r\n$4\r\n-1.5\r\n')
    expect(textOf(['SET', 'n', 2n ** 64n])).toBe('*3\r\n$3\r\nSET\r\n$1\r\nn\r\n$20\r\n18446744073709551616\r\n')
  })

  it.each([
    [[], 'encodeCommand: a command must have a name.'],
    [
      'SET a 1',
      "encodeCommand: a command must be a list of strings, numbers and bytes such as ['SET', 'key', 'value']; received a string.",
    ],
    [['SET', 'a', undefined], 'encodeCommand: argument 2 must be a string, a number or bytes; received undefined.'],
    [['SET', {}, 'a'], 'encodeCommand: argument 1 must be a string, a number or bytes; received an object.'],
    [
      ['SET', 'a', Number.POSITIVE_INFINITY],
      'encodeCommand: argument 2 must be a string, a number or bytes; received Infinity.',
    ],
  ])('rejects %j', (command, message) => {
    expect(() => encodeCommand(command as Command)).toThrow(
      expect.objectContaining({ code: 'FLUXGATE_ARGUMENT_INVALID', message }),
    )
  })

  it.each([9, 10, 99, 100, 65_535, 65_536, 1_000_000])('encodes an argument of %i bytes', (size) => {
    expect(textOf(['ECHO', 'x'.repeat(size)])).toBe(`*2\r\n$4\r\nECHO\r\n$${size}\r\n${'x'.repeat(size)}\r\n`)
  })

  it('encodes a thousand arguments', () => {
    const command = ['MGET', ...Array.from({ length: 999 }, (_, i) => `k${i}`)]
    expect(textOf(command)).toBe(`*1000\r\n${command.map((part) => `$${part.length}\r\n${part}\r\n`).join('')}`)
  })
})

describe('CommandWriter', () => {
  it('returns the arguments of the last command and can drop it', () => {
    const writer = new CommandWriter()
    writer.addCommand(['SET', 'a', '1'])
    writer.addCommand(['SET', 'b', '2'])
    expect(writer.argument(1)?.toString()).toBe('b')
    expect(writer.argument(3)).toBeUndefined()
    writer.drop()
    expect(writer.take()).toEqual(encodeCommand(['SET', 'a', '1']))
    expect(writer.take()).toHaveLength(0)
  })

  it('does not overwrite taken bytes before they are recycled', () => {
    const writer = new CommandWriter()
    writer.addCommand(['SET', 'a', '1'])
    const taken = writer.take()
    writer.addCommand(['DEL', 'zzzzzzzz'])
    expect(taken).toEqual(encodeCommand(['SET', 'a', '1']))
  })
})
