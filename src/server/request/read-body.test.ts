import type { IncomingMessage } from 'node:http'
import { describe, expect, it } from 'vitest'
import { assertReadable } from './read-body.js'

const read = (type: string): void => assertReadable({ headers: { 'content-type': type } } as IncomingMessage)

describe('Content-Type of a request body', () => {
  it.each([
    'application/json',
    ' Application/JSON ; ',
    'application/merge-patch+json;charset=utf-8',
    'application/json ; charset = "UTF-8" ;',
  ])('accepts %j', (type) => {
    expect(() => read(type)).not.toThrow()
  })

  it.each([
    '',
    'text/plain',
    'application/jsonx',
    'application/json; charset=latin1',
    'application/json; charset=utf-8; charset=utf-8',
    'application/json;;',
    'text/application/json',
    'application/+json',
  ])('rejects %j', (type) => {
    expect(() => read(type)).toThrow('Content-Type: application/json')
  })

  it('is parsed in linear time', () => {
    const spaces = ' '.repeat(500_000)
    for (const type of [`application/json${spaces}x`, `application/json;${spaces}charset${spaces}=${spaces}x`])
      expect(() => read(type)).toThrow('Content-Type: application/json')
    expect(() => read(`${spaces}application/json${spaces};${spaces}`)).not.toThrow()
  })
})
