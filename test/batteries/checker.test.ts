/** The batteries report each defect of a proxy that has it, and nothing of one that has none. */
import { expect, it } from 'vitest'
import { checkFrameworkAnswers } from './frameworks/expected-responses.js'
import { type Defect, startBrokenProxy } from './gateway/broken-proxy.js'
import { readSent } from './http/sent-stream.js'
import { GatewayBed } from './run.js'

async function kindsOf(defect: Defect, battery: string): Promise<Set<string>> {
  const bed = await GatewayBed.start(startBrokenProxy(defect))
  try {
    const kinds = new Set<string>()
    for (let seed = 1; seed <= 3; seed++)
      for (const { kind } of (await bed.run(battery, seed)).violations) kinds.add(kind)
    return kinds
  } finally {
    await bed.stop()
  }
}

it.each<[Defect, string, string]>([
  ['smuggle', 'framing', 'desynchronisation'],
  ['cross', 'valid', 'crossed answer'],
  ['repeat', 'valid', 'ran twice'],
  ['retry', 'idle', 'ran twice'],
  ['cut body', 'valid', 'changed body'],
  ['extra bytes', 'valid', 'unasked bytes'],
  ['cut response', 'valid', 'truncated response'],
  ['crash', 'valid', 'crash'],
])('a proxy with the defect "%s" is reported by the battery "%s" as %s', async (defect, battery, kind) => {
  expect(await kindsOf(defect, battery)).toContain(kind)
})

it.each(['valid', 'framing'])('a proxy without a defect passes the battery "%s"', async (battery) => {
  expect([...(await kindsOf('none', battery))].filter((kind) => kind !== 'hop-by-hop header')).toEqual([])
})

/** The kinds of violations in what a client received for two pipelined requests, 1 and 2. */
function frameworkKinds(act: string, received: string, hasLeft = false): string[] {
  const text = (id: number) =>
    `POST /id-${id} HTTP/1.1\r\nHost: a\r\nX-Id: ${id}\r\nX-Act: ${act}\r\nContent-Length: 2\r\n\r\nok`
  const sent = Buffer.from(text(1) + text(2))
  const kinds: string[] = []
  const stream = readSent(sent)
  checkFrameworkAnswers(
    { bytes: Buffer.from(received), sent, stream, hasLeft, isReset: false, isSilent: false, tunnelled: '' },
    (kind) => kinds.push(kind),
  )
  return kinds
}

const answer = (id: number, body: string, status = 200, more = '') =>
  `HTTP/1.1 ${status} X\r\nX-Id: ${id}\r\n${more}Content-Length: ${body.length}\r\n\r\n${body}`
/** The digest of the body `ok`. */
const digest = '7a85f4764bbd6daf1c3545efbbf0f279a6dc0beb'
const [first, second] = [answer(1, `1:${digest}`), answer(2, `2:${digest}`)]

it.each<[string, string, string, string[]]>([
  ['complete responses', 'none', first + second, []],
  ['interim responses', 'none', `HTTP/1.1 100 Continue\r\n\r\n${first}${second}`, []],
  ['no response', 'none', '', ['missing response']],
  ['one response of two', 'none', first, ['missing response']],
  ['a response that closes the connection', 'reject', answer(1, '', 429, 'Connection: close\r\n'), []],
  ['a truncated response', 'none', first + second.slice(0, -1), ['truncated response']],
  [
    'swapped responses',
    'none',
    second + first,
    ['crossed answer', 'changed response', 'crossed answer', 'changed response'],
  ],
  ['a response too many', 'none', first + second + second, ['unasked bytes']],
  ['a response that is not HTTP', 'none', 'SSH-2.0\r\n', ['malformed response']],
  ['a body that did not arrive', 'none', answer(1, '1:none') + second, ['changed response']],
  ['a request that should be rejected', 'reject', answer(1, '', 429) + second, ['unexpected response']],
])('the framework check on %s', (_, act, received, kinds) => {
  expect(frameworkKinds(act, received)).toEqual(kinds)
})

it('the framework check expects nothing for a client that left', () => {
  expect(frameworkKinds('none', first, true)).toEqual([])
  expect(frameworkKinds('none', first.slice(0, -1), true)).toEqual([])
})
