/** Batteries about what upstreams answer, and about both sides breaking off. */

import type { Draw } from '../draw.js'
import type { Conversation } from '../http/conversation.js'
import { parseResponse } from '../http/http-parser.js'
import { conversation, type Ids, requestText, type Scene, several, validRequest } from '../http/request-text.js'
import { answerText, type Plan, type Step } from '../plan.js'
import type { Battery } from './client-batteries.js'

/** The path of a request to the upstream that is expected to fail, with short timeouts. */
const hostilePath = (id: string): string => `/hostile/id-${id}`

/** The response of another request, which no client may ever see. */
const evilAnswer = (ids: Ids): string => answerText(ids.evil())

function hostileText(draw: Draw, id: string, ids: Ids): string {
  const ok = `HTTP/1.1 200 OK\r\nX-Id: ${id}\r\n`
  return draw.pick([
    `HTTP/1.1 200 O\x01K\r\nX-Id: ${id}\r\nContent-Length: 2\r\n\r\nok`,
    `HTTP/1.1 200 O\x7fK\x00\r\nX-Id: ${id}\r\nContent-Length: 2\r\n\r\nok`,
    `HTTP/1.1 200 \xe9\xff\r\nX-Id: ${id}\r\nContent-Length: 2\r\n\r\nok`,
    `HTTP/1.1 200 a\rb\r\nX-Id: ${id}\r\nContent-Length: 2\r\n\r\nok`,
    `HTTP/1.1 200 ${'r'.repeat(20_000)}\r\nX-Id: ${id}\r\nContent-Length: 2\r\n\r\nok`,
    `HTTP/1.1 200\r\nX-Id: ${id}\r\nContent-Length: 2\r\n\r\nok`,
    `HTTP/1.1 2000 OK\r\nX-Id: ${id}\r\n\r\n`,
    `HTTP/1.1 99 OK\r\nX-Id: ${id}\r\n\r\n`,
    `HTTP/1.1 000 OK\r\nX-Id: ${id}\r\nContent-Length: 2\r\n\r\nok`,
    `HTTP/1.1 999 OK\r\nX-Id: ${id}\r\nContent-Length: 2\r\n\r\nok`,
    `HTTP/1.1 600 OK\r\nX-Id: ${id}\r\nContent-Length: 2\r\n\r\nok`,
    `HTTP/2.0 200 OK\r\nX-Id: ${id}\r\n\r\n`,
    `HTTP/1.0 200 OK\r\nX-Id: ${id}\r\nContent-Length: 2\r\n\r\nok`,
    `HTTP/0.9 200 OK\r\nX-Id: ${id}\r\n\r\n`,
    `ICY 200 OK\r\nX-Id: ${id}\r\n\r\n`,
    'SSH-2.0-OpenSSH_9.6\r\n',
    '\x15\x03\x01\x00\x02\x02\x28',
    '\0'.repeat(50),
    `${ok}Content-Length: 2\r\nContent-Length: 2\r\n\r\nok`,
    `${ok}Content-Length: 2\r\nContent-Length: 3\r\n\r\nok!`,
    `${ok}Content-Length: 2, 2\r\n\r\nok`,
    `${ok}Content-Length: -1\r\n\r\nok`,
    `${ok}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
    `${ok}Transfer-Encoding: gzip\r\n\r\nok`,
    `${ok}Transfer-Encoding:\r\n\r\nok`,
    `${ok}Transfer-Encoding: chunked, identity\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
    `${ok}Transfer-Encoding: chunked\r\n\r\nzz\r\nok\r\n0\r\n\r\n`,
    `${ok}Transfer-Encoding: chunked\r\n\r\n2\r\nokok\r\n0\r\n\r\n`,
    `${ok}Transfer-Encoding: chunked\r\n\r\n2\nok\n0\n\n`,
    `${ok}Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nok`,
    `${ok}Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nContent-Length: 5\r\nX-Id: evil.trailer\r\n\r\n`,
    `${ok}Content-Length: 10\r\n\r\nok`,
    `${ok}X-A: b\r\n c\r\nContent-Length: 2\r\n\r\nok`,
    `${ok}X-A : b\r\nContent-Length: 2\r\n\r\nok`,
    `${ok}X-A\r\nContent-Length: 2\r\n\r\nok`,
    `${ok}: b\r\nContent-Length: 2\r\n\r\nok`,
    `${ok}X-A: b\x01c\r\nContent-Length: 2\r\n\r\nok`,
    `${ok}X-A: b\0c\r\nContent-Length: 2\r\n\r\nok`,
    `${ok}X-A: b\rX-B: c\r\nContent-Length: 2\r\n\r\nok`,
    `${ok}X-A: \xff\xfe\r\nContent-Length: 2\r\n\r\nok`,
    `${ok}X-\xe9: b\r\nContent-Length: 2\r\n\r\nok`,
    `${ok}X-Big: ${'b'.repeat(100_000)}\r\nContent-Length: 2\r\n\r\nok`,
    `${ok}${Array.from({ length: 3_000 }, (_, i) => `X-${i}: b\r\n`).join('')}Content-Length: 2\r\n\r\nok`,
    `${ok}Connection: X-A\r\nX-A: b\r\nContent-Length: 2\r\n\r\nok`,
    `${ok}Connection: close\r\nContent-Length: 2\r\n\r\nok`,
    `${ok}Upgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: 2\r\n\r\nok`,
    `HTTP/1.1 204 No Content\r\nX-Id: ${id}\r\nContent-Length: 2\r\n\r\nok`,
    `HTTP/1.1 204 No Content\r\nX-Id: ${id}\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
    `HTTP/1.1 304 Not Modified\r\nX-Id: ${id}\r\nContent-Length: 2\r\n\r\nok`,
    `HTTP/1.1 101 Switching Protocols\r\nX-Id: ${id}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n${evilAnswer(ids)}`,
    `HTTP/1.1 200 OK\nX-Id: ${id}\nContent-Length: 2\n\nok`,
    `${ok}Content-Length: 2\r\n\r\nok${evilAnswer(ids)}`,
    `${ok}Content-Length: 2\r\n\r\nok\r\n\r\n`,
    `${ok}Content-Length: 2\r\n\r\nokHTTP/1.1 `,
    `\r\n\r\n${ok}Content-Length: 2\r\n\r\nok`,
    '',
  ])
}

/** A method, some of them with a body. */
function request(draw: Draw, id: string, more: Parameters<typeof validRequest>[2] = {}): string {
  const method = draw.pick(['GET', 'GET', 'HEAD', 'POST', 'PUT', 'OPTIONS'])
  const hasBody = method === 'POST' || method === 'PUT'
  const body = draw.text(1 + draw.int(50))
  const version = draw.chance(0.15) ? '1.0' : '1.1'
  const headers = hasBody ? [`Content-Length: ${body.length}`] : []
  return requestText({ id, method, target: hostilePath(id), version, headers, body: hasBody ? body : '', ...more })
}

const planned = (draw: Draw, ids: Ids, make: (id: string) => Plan, more: Partial<Scene> = {}): Scene => {
  const plans = new Map<string, Plan>()
  const conversations = Array.from({ length: 6 }, (): Conversation => {
    const texts = several(draw, 3, () => {
      if (draw.chance(0.2)) return validRequest(draw, ids)
      const id = ids.next()
      plans.set(id, make(id))
      return request(draw, id)
    })
    return conversation(draw, texts)
  })
  return { conversations, plans, mustSucceed: false, ...more }
}

const ending = (draw: Draw): Step[] => draw.pick<Step[]>([[{ end: 'close' }], [{ end: 'reset' }], [], []])

/** Bodies that stall have no deadline, so a response that is not complete ends with its connection. */
const endingOf = (draw: Draw, text: string): Step[] => {
  const isComplete = parseResponse(Buffer.from(text, 'latin1'), 'GET', false).kind === 'complete'
  return isComplete ? ending(draw) : [{ end: draw.pick(['close', 'reset']) }]
}

export const hostile: Battery = (draw, ids) =>
  planned(draw, ids, (id) => {
    const text = hostileText(draw, id, ids)
    return { steps: [{ write: text }, ...endingOf(draw, text)], isSound: false }
  })

export const dripping: Battery = (draw, ids) =>
  planned(draw, ids, (id) => {
    const text = draw.chance(0.5)
      ? hostileText(draw, id, ids)
      : answerText(id, { framing: draw.pick(['length', 'chunked']) })
    const steps: Step[] = draw.chance(0.1)
      ? [
          { write: `HTTP/1.1 200 OK\r\nX-Id: ${id}\r\n` },
          { flood: `X-A: ${draw.text(50)}\r\n`, times: Number.POSITIVE_INFINITY },
        ]
      : [{ drip: text.slice(0, 400) }, { write: text.slice(400) }, ...endingOf(draw, text)]
    return { steps, isSound: false }
  })

const hint = 'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n'

export const interim: Battery = (draw, ids) =>
  planned(draw, ids, (id) => {
    const text = draw.pick([
      hint,
      'HTTP/1.1 100 Continue\r\n\r\n',
      'HTTP/1.1 102 Processing\r\n\r\n',
      'HTTP/1.1 199 X\r\nX-A: b\r\n\r\n',
      'HTTP/1.1 103 Early Hints\r\nLink: <\x01>\r\n\r\n',
      'HTTP/1.1 103 Early Hints\r\nLink: nonsense\r\n\r\n',
      'HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\n',
    ])
    const times = draw.pick([1, 2, 30, 3_000, draw.chance(0.2) ? Number.POSITIVE_INFINITY : 5])
    const last = draw.chance(0.8) ? answerText(id) : hostileText(draw, id, ids)
    return { steps: [{ flood: text, times }, { write: last }, ...endingOf(draw, last)], isSound: false }
  })

/** Responses before the end of a request, and connections that end in the middle. */
export const early: Battery = (draw, ids) => {
  const plans = new Map<string, Plan>()
  const one = (): Conversation => {
    const id = ids.next()
    const size = draw.pick([10, 1_000, 100_000, 400_000])
    const isChunked = draw.chance(0.4)
    const body = 'b'.repeat(size)
    const headers = [isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${size}`]
    const text = isChunked ? `${size.toString(16)}\r\n${body}\r\n0\r\n\r\n` : body
    const framing = draw.pick(['length', 'chunked', 'close'] as const)
    const answer = answerText(id, {
      status: draw.pick([200, 400, 413, 503]),
      framing,
      body: draw.text(draw.pick([5, 5_000])),
    })
    const cut = 1 + draw.int(answer.length)
    const whole: Step[] = [{ write: answer }, ...(framing === 'close' ? [{ end: 'close' } as const] : ending(draw))]
    const broken: Step[] = [
      { write: answer.slice(0, cut) },
      { waitMs: draw.int(10) },
      { end: draw.pick(['close', 'reset']) },
    ]
    const steps = draw.pick<Step[]>([whole, whole, broken, [{ waitMs: draw.int(20) }, ...whole]])
    plans.set(id, { isEarly: draw.chance(0.7), steps, isSound: false })
    const head = requestText({ id, method: draw.pick(['POST', 'PUT']), target: hostilePath(id), headers })
    const half = draw.int(text.length)
    const next = draw.chance(0.5) ? [{ send: validRequest(draw, ids) }] : []
    return {
      moves: draw.pick<Conversation['moves']>([
        [{ send: head + text }, ...next],
        [{ send: head + text }, ...next],
        [{ send: head + text.slice(0, half) }, { waitMs: draw.int(20) }, { send: text.slice(half) }, ...next],
        [{ send: head + text.slice(0, half) }, { waitMs: draw.int(20) }, { leave: draw.pick(['reset', 'close']) }],
        [{ send: head + text }, { waitMs: draw.int(20) }, { leave: draw.pick(['reset', 'close']) }],
        [{ send: head + text.slice(0, half) }, { awaitAnswer: true }, { leave: 'close' }],
      ]),
    }
  }
  const conversations = Array.from({ length: 6 }, (_, index) =>
    index === 5
      ? conversation(
          draw,
          several(draw, 4, () => validRequest(draw, ids)),
        )
      : one(),
  )
  return { conversations, plans, mustSucceed: false }
}

/** Connections in the pool that receive bytes, or close, while no request is on them. */
export const idle: Battery = (draw, ids) => ({
  ...planned(draw, ids, (id) =>
    draw.chance(0.4)
      ? { steps: [{ end: draw.pick(['close', 'reset']) }], isSound: false }
      : { steps: [{ write: answerText(id) }, ...ending(draw)], isSound: true },
  ),
  disturbances: [
    draw.pick([evilAnswer(ids), 'HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n', undefined, '\0', hint]),
  ],
})
