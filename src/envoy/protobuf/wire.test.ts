import { describe, expect, it } from 'vitest'
import { MalformedMessage, WireReader } from './wire-reader.js'
import { WireWriter } from './wire-writer.js'

const read = (bytes: readonly number[]): WireReader => {
  const reader = new WireReader(Buffer.from(bytes))
  reader.next()
  return reader
}

describe('numbers', () => {
  it.each([0, 1, 127, 128, 16_383, 16_384, 2 ** 31, 2 ** 32 - 1, 2 ** 53 - 1])('writes and reads %i', (value) => {
    const writer = new WireWriter(1)
    writer.index(1, value)
    const reader = new WireReader(writer.finish())
    expect(reader.next()).toBe(true)
    expect(reader.uint64()).toBe(value)
    expect(reader.next()).toBe(false)
  })

  it('reads 64 bits without a sign', () => {
    expect(read([0x08, ...new Array(9).fill(0xff), 0x01]).uint64()).toBe(2 ** 64)
    expect(read([0x08, ...new Array(9).fill(0x80), 0x01]).uint64()).toBe(2 ** 63)
  })

  it('truncates what is longer', () => {
    expect(read([0x08, 0x83, 0x80, 0x80, 0x80, 0x10]).uint32()).toBe(3)
    expect(read([0x08, ...new Array(9).fill(0xff), 0x01]).uint32()).toBe(2 ** 32 - 1)
    expect(read([0x08, 0x83, ...new Array(8).fill(0x80), 0x02]).uint64()).toBe(3)
  })

  it.each([
    ['that ends early', [0x08, 0x80]],
    ['of more than ten bytes', [0x08, ...new Array(10).fill(0xff), 0x01]],
    ['of another type', [0x0a, 0x01]],
  ])('rejects a number %s', (_, bytes) => {
    expect(() => read(bytes).uint32()).toThrow(MalformedMessage)
  })
})

describe('text and messages', () => {
  it.each(['', 'a', 'x'.repeat(42), 'x'.repeat(43), 'ü'.repeat(50), '\u{1f600}', 'x'.repeat(70_000)])(
    'writes and reads text %#',
    (text) => {
      const writer = new WireWriter(1)
      writer.requiredString(2, text)
      const reader = new WireReader(writer.finish())
      reader.next()
      expect(reader.string()).toBe(text)
    },
  )

  it('replaces bytes that are not UTF-8', () => {
    expect(read([0x0a, 0x02, 0xff, 0x61]).string()).toBe('\ufffda')
  })

  it.each([1, 127, 128, 20_000])('writes a nested message of %i bytes', (length) => {
    const writer = new WireWriter(1)
    const outer = writer.begin(1)
    const inner = writer.begin(1)
    writer.bytes(3, Buffer.alloc(length, 7))
    writer.end(inner)
    writer.uint(2, 5)
    writer.end(outer)
    writer.uint(4, 9)
    const reader = new WireReader(writer.finish())
    reader.next()
    const end = reader.enter()
    reader.next()
    const innerEnd = reader.enter()
    expect([reader.next(), reader.field, reader.string().length]).toEqual([true, 3, length])
    reader.leave(innerEnd)
    expect([reader.next(), reader.uint32(), reader.next()]).toEqual([true, 5, false])
    reader.leave(end)
    expect([reader.next(), reader.uint32(), reader.next()]).toEqual([true, 9, false])
  })

  it('skips unknown fields of every type', () => {
    const bytes = [
      0x08, 0x96, 0x01, 0x11, 1, 2, 3, 4, 5, 6, 7, 8, 0x1a, 1, 0, 0x25, 1, 2, 3, 4, 0x2b, 0x08, 1, 0x2c, 0x30, 7,
    ]
    const reader = new WireReader(Buffer.from(bytes))
    const fields: number[] = []
    while (reader.next()) {
      fields.push(reader.field)
      reader.skip()
    }
    expect(fields).toEqual([1, 2, 3, 4, 5, 6])
  })

  it.each([
    ['a length beyond the message', [0x0a, 0x05, 0x61]],
    ['the field number 0', [0x00, 0x01]],
    ['an unknown wire type', [0x0e, 0x01]],
    ['a group without an end', [0x0b, 0x08, 0x01]],
    ['the end of another group', [0x0b, 0x14]],
    ['groups that are nested deeply', new Array(40).fill(0x0b)],
    ['a fixed number that ends early', [0x09, 1, 2]],
  ])('rejects %s', (_, bytes) => {
    const reader = new WireReader(Buffer.from(bytes))
    expect(() => {
      while (reader.next()) reader.skip()
    }).toThrow(MalformedMessage)
  })
})
