import { describe, expect, it } from 'vitest'
import { errorIn, type Reply, ReplyError, ReplyReader } from './reply-reader.js'

function read(chunks: readonly Buffer[], wantsText = true): Reply[] {
  const replies: Reply[] = []
  const reader = new ReplyReader((reply) => replies.push(reply))
  reader.wantsText = wantsText
  for (const chunk of chunks) reader.read(chunk)
  return replies
}

const all = Buffer.from(
  '+OK\r\n:42\r\n-ERR no\r\n$6\r\n서울\r\n$-1\r\n$0\r\n\r\n*2\r\n:1\r\n*2\r\n+a\r\n-WRONGTYPE x\r\n*0\r\n*-1\r\n$7\r\na\r\n+b\r\n\r\n:-7\r\n',
)
const expected = [
  'OK',
  42,
  new ReplyError('ERR no'),
  '서울',
  null,
  '',
  [1, ['a', new ReplyError('WRONGTYPE x')]],
  [],
  null,
  'a\r\n+b\r\n',
  -7,
]

describe('ReplyReader', () => {
  it('parses every type of reply', () => expect(read([all])).toEqual(expected))

  it('does not depend on chunk boundaries', () => {
    for (let cut = 1; cut < all.length; cut++)
      expect(read([all.subarray(0, cut), all.subarray(cut)]), `cut at ${cut}`).toEqual(expected)
    expect(read(Array.from(all, (_, i) => all.subarray(i, i + 1)))).toEqual(expected)
  })

  it('finds errors at any depth without decoding text, and counts all replies', () => {
    const errors = read([all], false).map(errorIn)
    expect(errors).toHaveLength(expected.length)
    expect(errors.filter((error) => error !== undefined)).toEqual(['ERR no', 'WRONGTYPE x'])
  })

  it('throws if the server does not use the Redis protocol', () => {
    expect(() => read([Buffer.from('HTTP/1.1 400 Bad Request\r\n')])).toThrow(
      'the server does not use the Redis protocol',
    )
  })
})
