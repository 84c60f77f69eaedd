import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { portableSha256, sha256 } from './sha256.js'

it('computes the digest of Node for every length around the block size', () => {
  for (let length = 0; length < 200; length++) {
    const message = new Uint8Array(length).map((_, i) => (i * 89 + length) & 0xff)
    const digest = Buffer.from(portableSha256(message)).toString('hex')
    expect(digest, `length ${length}`).toBe(createHash('sha256').update(message).digest('hex'))
  }
})

it('encodes the digest of a text in UTF-8', () => {
  expect(sha256('key ü', 'base64url')).toBe(createHash('sha256').update('key ü').digest('base64url'))
  expect(sha256('', 'hex')).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855')
})
