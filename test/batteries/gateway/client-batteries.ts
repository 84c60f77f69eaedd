/** Batteries about what clients send. Each makes a scene from random choices. */

import type { Draw } from '../draw.js'
import type { Conversation } from '../http/conversation.js'
import {
  chunked,
  conversation,
  type Ids,
  pathOf,
  requestText,
  type Scene,
  several,
  smuggled,
  validRequest,
} from '../http/request-text.js'
import { answerText, type Plan } from '../plan.js'

export type Battery = (draw: Draw, ids: Ids) => Scene

const noPlans: ReadonlyMap<string, Plan> = new Map()

/** Valid requests, then one that must not be forwarded, then more that nothing may read. */
const attack = (draw: Draw, ids: Ids, text: string): Conversation =>
  conversation(draw, [
    ...Array.from({ length: draw.int(3) }, () => validRequest(draw, ids)),
    text,
    ...Array.from({ length: draw.int(3) }, () => smuggled(ids)),
  ])

const innocent = (draw: Draw, ids: Ids): Conversation =>
  conversation(
    draw,
    several(draw, 4, () => validRequest(draw, ids)),
  )

/** Attacks beside clients that do nothing wrong and share the upstream connections. */
const mixed = (draw: Draw, ids: Ids, make: () => Conversation, plans = noPlans): Scene => ({
  conversations: Array.from({ length: 6 }, (_, index) => (index % 2 === 0 ? make() : innocent(draw, ids))),
  plans,
  mustSucceed: false,
})

const badFraming: readonly string[] = [
  'Content-Length: 5\r\nContent-Length: 6',
  'Content-Length: 5\r\nContent-Length: 5',
  'Content-Length: 5, 6',
  'Content-Length: +5',
  'Content-Length: -1',
  'Content-Length: 5 ',
  'Content-Length: 0x5',
  'Content-Length: 5;a',
  'Content-Length:',
  'Content-Length: 99999999999999999999',
  'Content-Length : 5',
  'Content-Length: 5\r\nTransfer-Encoding: chunked',
  'Transfer-Encoding: chunked\r\nContent-Length: 5',
  'Transfer-Encoding:',
  'Transfer-Encoding: ',
  'Transfer-Encoding: identity',
  'Transfer-Encoding: chunked, identity',
  'Transfer-Encoding: chunked, chunked',
  'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding: xchunked',
  'Transfer-Encoding: "chunked"',
  'Transfer-Encoding: chunked;q=1',
  'Transfer-Encoding: \x0bchunked',
  'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity',
  'Transfer-Encoding: identity\r\nTransfer-Encoding: chunked',
  'Transfer-Encoding : chunked',
  ' Transfer-Encoding: chunked',
  'X-A: b\r\n Transfer-Encoding: chunked',
  'Transfer-Encoding:\r\n chunked',
  'Transfer_Encoding: chunked',
  'X-A: b\nTransfer-Encoding: chunked',
  'X-A: b\rTransfer-Encoding: chunked',
  'X-A: b\0c',
  'X-A\r\nTransfer-Encoding: chunked',
  ': b',
]

const badChunks: readonly string[] = [
  'zz\r\nabc\r\n0\r\n\r\n',
  '3\r\nabcd\r\n0\r\n\r\n',
  '3\nabc\r\n0\r\n\r\n',
  '3\r\nabc\n0\r\n\r\n',
  '3 \r\nabc\r\n0\r\n\r\n',
  ' 3\r\nabc\r\n0\r\n\r\n',
  '0x3\r\nabc\r\n0\r\n\r\n',
  '+3\r\nabc\r\n0\r\n\r\n',
  '-3\r\nabc\r\n0\r\n\r\n',
  'fffffffffffffffff\r\nabc\r\n0\r\n\r\n',
  '3;a\nb\r\nabc\r\n0\r\n\r\n',
  '3;a\rb\r\nabc\r\n0\r\n\r\n',
  '3\r\nabc0\r\n\r\n',
  '3\r\nabc\r\n0\r\nX-A: b\r\n c\r\n\r\n',
  '3\r\nabc\r\n0\r\nContent-Length : 5\r\n\r\n',
  '3\r\nabc\r\n0\r\n\n',
  '\r\n3\r\nabc\r\n0\r\n\r\n',
]

export const framing: Battery = (draw, ids) =>
  mixed(draw, ids, () => {
    const id = ids.next()
    const method = draw.pick(['POST', 'PUT', 'GET', 'DELETE'])
    if (draw.chance(0.4)) {
      const body = draw.pick(badChunks)
      return attack(draw, ids, requestText({ id, method, headers: ['Transfer-Encoding: chunked'], body }))
    }
    const body = draw.pick(['', 'abcde', '0\r\n\r\n', `0\r\n\r\n${smuggled(ids)}`, chunked(draw, draw.text(20))])
    const version = draw.chance(0.1) ? '1.0' : '1.1'
    return attack(draw, ids, requestText({ id, method, version, headers: [draw.pick(badFraming)], body }))
  })

export const targets: Battery = (draw, ids) =>
  mixed(draw, ids, () => {
    const id = ids.next()
    const path = pathOf(id)
    const target = draw.pick([
      `http://gateway.example${path}`,
      `HTTP://other.example:8080${path}?a=b`,
      `https://gateway.example${path}`,
      `ftp://gateway.example${path}`,
      `http://user:secret@gateway.example${path}`,
      `http://${path}`,
      `http:${path}`,
      `//gateway.example${path}`,
      `/x/..${path}`,
      `/.${path}`,
      `/sound/id-${ids.evil()}/..${path.slice(6)}`,
      `${path}#fragment`,
      `${path}?a#b`,
      `${path}?a=%00&b=%0d%0aX-A:%20b`,
      `${path}%0d%0aX-Injected:%201`,
      `${path}%00`,
      `${path}%zz`,
      `${path}%`,
      `/sound\\x\\..${path.slice(6).replace('/', '\\')}`,
      `${path};a=b`,
      `${path}"<>^\`{|}`,
      `${path}\x01`,
      `${path}\x7f`,
      `${path}\xe9`,
      `${path}\t`,
      `${path} x`,
      `${path} HTTP/1.1\r\nX-A: b`,
      `${path}?${draw.text(1 + draw.int(20_000))}`,
      `/${draw.text(1 + draw.int(20_000))}${path}`,
      '*',
      'gateway.example:80',
      path.slice(1),
      '',
      `?x=${path}`,
      `.${path}`,
    ])
    const method = draw.pick(['GET', 'POST', 'OPTIONS', 'CONNECT', 'HEAD', 'TRACE'])
    return attack(draw, ids, requestText({ id, method, target }))
  })

export const host: Battery = (draw, ids) =>
  mixed(draw, ids, () => {
    const id = ids.next()
    const value = draw.pick([
      'a',
      'a:80',
      'a:',
      'a:99999',
      'a:8x',
      '[::1]',
      '[::1]:80',
      '[::1',
      '::1',
      '',
      ' ',
      'a b',
      'a/b',
      'a@b',
      'a,b',
      'a;b=c',
      'a"',
      'a\\b',
      'a\tb',
      'a?b',
      'a#b',
      'a%00b',
      '\xe9',
      'a\0b',
      'a\x01',
      draw.text(300),
      '127.0.0.1',
      'a:80:80',
      '*',
      '-',
    ])
    const more = draw.pick([
      [],
      [],
      [],
      ['Host: b'],
      [`Host: ${value}`],
      [' Host: b'],
      ['Host : b'],
      ['X-A: b\r\n c'],
      ['X-Forwarded-Host: evil'],
      ['Forwarded: host="a;b"'],
      ['Host:\r\n b'],
    ])
    const target = draw.chance(0.3) ? `http://${draw.pick(['a', 'b:80', value])}${pathOf(id)}` : pathOf(id)
    const version = draw.chance(0.2) ? '1.0' : '1.1'
    const given = draw.chance(0.15) ? undefined : value
    return attack(draw, ids, requestText({ id, host: given, target, headers: more, version }))
  })

export const expectations: Battery = (draw, ids) => {
  const plans = new Map<string, Plan>()
  const make = (): Conversation => {
    const id = ids.next()
    const body = draw.text(1 + draw.int(100))
    const isChunked = draw.chance(0.3)
    const length = isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${body.length}`
    const sentBody = isChunked ? chunked(draw, body) : body
    const expectation = draw.pick([
      '100-continue',
      '100-Continue',
      '100-continue',
      '100-continue, x',
      'miracles',
      '',
      '100',
    ])
    const version = draw.chance(0.1) ? '1.0' : '1.1'
    const method = draw.pick(['POST', 'PUT', 'GET'])
    const hasBody = draw.chance(0.85)
    const headers = [`Expect: ${expectation}`, ...(hasBody ? [length] : [])]
    const head = requestText({ id, method, version, headers })
    const early = draw.pick([undefined, undefined, 200, 401, 413, 204])
    if (early !== undefined)
      plans.set(id, {
        isEarly: true,
        isSound: false,
        steps: [{ write: answerText(id, { status: early }) }, ...(draw.chance(0.5) ? [{ end: 'close' } as const] : [])],
      })
    const before = Array.from({ length: draw.int(3) }, () => validRequest(draw, ids)).join('')
    if (!hasBody) return conversation(draw, [before, head, validRequest(draw, ids)])
    if (draw.chance(0.4) || version === '1.0')
      return conversation(draw, [before, head, sentBody, validRequest(draw, ids)])
    // Only a client without anything before the request can tell which response it got.
    return { moves: [{ send: head }, { awaitAnswer: true }, { sendIfContinued: sentBody }] }
  }
  return mixed(draw, ids, make, plans)
}

export const upgrades: Battery = (draw, ids) => {
  const plans = new Map<string, Plan>()
  const make = (): Conversation => {
    const id = ids.next()
    const protocol = draw.pick(['websocket', 'WebSocket', 'websocket', 'h2c', 'TLS/1.0', 'websocket, h2c', 'x'])
    const body = draw.pick(['', '', '', 'abcde', smuggled(ids)])
    const headers = [
      `Upgrade: ${protocol}`,
      `Connection: ${draw.pick(['Upgrade', 'upgrade', 'keep-alive, Upgrade', 'close, Upgrade', 'x'])}`,
    ]
    headers.push('Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', 'Sec-WebSocket-Version: 13')
    if (protocol === 'h2c') headers.push('HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA')
    let sentBody = body
    if (body !== '' || draw.chance(0.2)) {
      if (draw.chance(0.5)) headers.push(`Content-Length: ${body.length}`)
      else {
        headers.push('Transfer-Encoding: chunked')
        sentBody = chunked(draw, body)
      }
    }
    const method = draw.chance(0.85) ? 'GET' : 'POST'
    const version = draw.chance(0.05) ? '1.0' : '1.1'
    const switched = `HTTP/1.1 101 Switching Protocols\r\nX-Id: ${id}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n`
    const kind = draw.pick(['accept', 'accept', 'accept', 'reject', 'reject', 'chunked', 'drop', 'slow', 'default'])
    const isUpgrade = /^websocket$/i.test(protocol)
    if (kind === 'accept' && isUpgrade)
      plans.set(id, { steps: [{ write: switched }, { tunnel: true }], isSound: false })
    if (kind === 'slow' && isUpgrade)
      plans.set(id, { steps: [{ waitMs: draw.int(30) }, { drip: switched }, { tunnel: true }], isSound: false })
    if (kind === 'reject')
      plans.set(id, {
        steps: [{ write: answerText(id, { status: draw.pick([200, 400, 403, 426, 500]) }) }],
        isSound: true,
      })
    if (kind === 'chunked') plans.set(id, { steps: [{ write: answerText(id, { framing: 'chunked' }) }], isSound: true })
    if (kind === 'drop') plans.set(id, { steps: [{ end: draw.pick(['close', 'reset']) }], isSound: false })
    const text = requestText({ id, method, version, headers, body: sentBody })
    const slow = ids.next()
    plans.set(slow, { steps: [{ waitMs: draw.int(40) }, { write: answerText(slow) }], isSound: true })
    const before = draw.chance(0.4) ? requestText({ id: slow }) : ''
    if (draw.chance(0.5)) return conversation(draw, [before + text, draw.chance(0.5) ? validRequest(draw, ids) : ''])
    return {
      moves: [{ send: before + text }, { awaitAnswer: true }, { tunnel: draw.text(50) }, { tunnel: draw.text(5) }],
    }
  }
  return mixed(draw, ids, make, plans)
}

export const pipelining: Battery = (draw, ids) => {
  const plans = new Map<string, Plan>()
  const slow = (): string => {
    const id = ids.next()
    const method = draw.pick(['GET', 'POST'])
    plans.set(id, {
      steps: [{ waitMs: draw.int(50) }, { write: answerText(id, { framing: draw.pick(['length', 'chunked']) }) }],
      isSound: true,
    })
    return requestText({
      id,
      method,
      headers: method === 'POST' ? ['Content-Length: 3'] : [],
      body: method === 'POST' ? 'abc' : '',
    })
  }
  const part = (): string =>
    draw.pick([
      slow,
      slow,
      () => validRequest(draw, ids),
      () => validRequest(draw, ids),
      () => requestText({ id: ids.next(), method: 'CONNECT', target: 'a:443' }),
      () => requestText({ id: ids.next(), headers: ['Upgrade: websocket', 'Connection: Upgrade'] }),
      () =>
        requestText({
          id: ids.next(),
          headers: ['Upgrade: h2c', 'Connection: Upgrade, HTTP2-Settings', 'HTTP2-Settings: AA'],
        }),
      () => requestText({ id: ids.next(), version: '1.0' }),
      () => requestText({ id: ids.next(), version: '1.0', headers: ['Connection: keep-alive'] }),
      () => requestText({ id: ids.next(), headers: ['Connection: close'] }),
      () => `${draw.text(20)}\r\n\r\n`,
      () => '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
      () => requestText({ id: ids.next(), headers: ['Content-Length: 5\r\nContent-Length: 6'], body: 'abcde' }),
      () =>
        requestText({
          id: ids.next(),
          headers: ['Expect: 100-continue', 'Content-Length: 3'],
          method: 'POST',
          body: 'abc',
        }),
      () => '\r\n',
    ])()
  return {
    conversations: Array.from({ length: 6 }, (_, index) =>
      index === 5
        ? innocent(draw, ids)
        : conversation(draw, [slow(), ...several(draw, 6, part)], { halfClosesEarly: draw.chance(0.1) }),
    ),
    plans,
    mustSucceed: false,
  }
}

/** Nothing is wrong here: every request must get the response of the upstream. */
export const valid: Battery = (draw, ids) => ({
  conversations: Array.from({ length: 8 }, () => innocent(draw, ids)),
  plans: noPlans,
  mustSucceed: true,
})
