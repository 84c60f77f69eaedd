import type { Draw } from '../draw.js'
import type { Plan } from '../plan.js'
import type { Conversation, Move } from './conversation.js'

/** The conversations and upstream responses that a battery generates from a seed. */
export interface Scene {
  readonly conversations: readonly Conversation[]
  /** How the upstream answers, by the id of a request. */
  readonly plans: ReadonlyMap<string, Plan>
  /** True if each request that is valid must get the response of its upstream. */
  readonly mustSucceed: boolean
  /** Bytes that the upstream sends on idle connections after the conversations; undefined closes them. */
  readonly disturbances?: readonly (string | undefined)[]
}

/** Ids of one seed. `evil` ones belong to bytes that are not a request. */
export class Ids {
  readonly #prefix: string
  #count = 0

  constructor(battery: string, seed: number) {
    this.#prefix = `${battery}.${seed}`
  }

  next(): string {
    this.#count += 1
    return `${this.#prefix}.${this.#count}`
  }

  evil(): string {
    return `evil.${this.next()}`
  }
}

export interface RequestShape {
  readonly id: string
  readonly method?: string
  readonly target?: string
  readonly version?: string
  readonly host?: string | undefined
  readonly headers?: readonly string[]
  /** Bytes behind the head, already framed. */
  readonly body?: string
}

/** The path of a request to the upstream that answers well. */
export const pathOf = (id: string): string => `/sound/id-${id}`

export function requestText({
  id,
  method = 'GET',
  target,
  version = '1.1',
  headers = [],
  body = '',
  ...rest
}: RequestShape): string {
  const host = 'host' in rest ? rest.host : 'gateway.example'
  const lines = [`${method} ${target ?? pathOf(id)} HTTP/${version}`]
  if (host !== undefined) lines.push(`Host: ${host}`)
  return `${[...lines, ...headers].join('\r\n')}\r\n\r\n${body}`
}

/** A request that only a confused reader finds. */
export const smuggled = (ids: Ids): string => requestText({ id: ids.evil() })

/** A body in chunks of random sizes, sometimes with extensions and trailers. */
export function chunked(draw: Draw, body: string): string {
  let text = ''
  for (let from = 0; from < body.length; ) {
    const size = 1 + draw.int(Math.min(body.length - from, 40))
    const digits = draw.chance(0.2) ? size.toString(16).padStart(4, '0') : size.toString(16)
    const extension = draw.chance(0.15) ? draw.pick([';a', ';a=b', ';name="a b"', ';a=1;b=2']) : ''
    text += `${draw.chance(0.3) ? digits.toUpperCase() : digits}${extension}\r\n${body.slice(from, from + size)}\r\n`
    from += size
  }
  return `${text}0\r\n${draw.chance(0.2) ? 'X-Trailer: 1\r\n' : ''}\r\n`
}

/** A valid request with a random method and body. Some bodies look like requests. */
export function validRequest(draw: Draw, ids: Ids, more: Partial<RequestShape> = {}): string {
  const id = more.id ?? ids.next()
  const method = more.method ?? draw.pick(['GET', 'GET', 'POST', 'PUT', 'HEAD', 'DELETE', 'PATCH', 'OPTIONS'])
  const content = draw.chance(0.3) ? smuggled(ids) : draw.text(draw.int(200))
  const headers = [...(more.headers ?? [])]
  if (draw.chance(0.2)) headers.push(`X-Filler: ${draw.text(draw.int(300))}`)
  if (draw.chance(0.1)) headers.push('Connection: X-Private', 'X-Private: 1')
  const kind =
    method === 'GET' || method === 'HEAD'
      ? draw.pick(['none', 'none', 'none', 'length'])
      : draw.pick(['length', 'chunked', 'empty'])
  let body = ''
  if (kind === 'length') {
    headers.push(`${draw.pick(['Content-Length', 'content-length', 'CONTENT-LENGTH'])}: ${content.length}`)
    body = content
  } else if (kind === 'chunked') {
    headers.push(`Transfer-Encoding: ${draw.pick(['chunked', 'Chunked', 'CHUNKED'])}`)
    body = chunked(draw, content)
  } else if (kind === 'empty') headers.push('Content-Length: 0')
  return requestText({ ...more, id, method, headers, body })
}

/** Sends everything at once or in pieces, and sometimes waits in between. */
export function conversation(draw: Draw, texts: readonly string[], more: Partial<Conversation> = {}): Conversation {
  const moves: Move[] = []
  let text = ''
  for (const one of texts) {
    text += one
    if (draw.chance(0.2)) {
      moves.push({ send: text }, { waitMs: draw.int(4) })
      text = ''
    }
  }
  if (text !== '') moves.push({ send: text })
  return { moves, pieces: draw.pick([1, 1, 2, 5, 20]), ...more }
}

export const several = <T>(draw: Draw, most: number, make: (index: number) => T): T[] =>
  Array.from({ length: 1 + draw.int(most) }, (_, index) => make(index))
