/** The bytes of an upstream, and when it sends them. */
export type Step =
  | { readonly write: string }
  /** One byte at a time. */
  | { readonly drip: string }
  | { readonly waitMs: number }
  /** Resumes when the whole request has arrived. */
  | { readonly awaitRequest: true }
  /** Repeats until the gateway closes the connection, or `times` is reached. */
  | { readonly flood: string; readonly times: number }
  /** Sends back every byte from now on. */
  | { readonly tunnel: true }
  | { readonly end: 'close' | 'reset' }

export interface Plan {
  /** Starts with the head of a request, before its body. */
  readonly isEarly?: boolean
  readonly steps: readonly Step[]
  /** False if the upstream violates HTTP or breaks off: the gateway may answer by itself. */
  readonly isSound: boolean
}

/** The response that `steps` amount to. Undefined if it has no end. */
export function bytesOf({ steps }: Plan): Buffer | undefined {
  let text = ''
  for (const step of steps) {
    if ('write' in step) text += step.write
    else if ('drip' in step) text += step.drip
    else if ('flood' in step) {
      if (!Number.isFinite(step.times)) return undefined
      text += step.flood.repeat(step.times)
    } else if ('tunnel' in step) break
  }
  return Buffer.from(text, 'latin1')
}

export const endsConnection = ({ steps }: Plan): boolean => steps.some((step) => 'end' in step)

export interface Answer {
  readonly status?: number
  readonly reason?: string
  readonly headers?: string
  readonly body?: string
  readonly framing?: 'length' | 'chunked' | 'close'
}

/** A well-formed response that carries the id of its request. */
export function answerText(id: string, answer: Answer = {}): string {
  const { status = 200, reason = 'OK', headers = '', body = `answer to ${id}`, framing = 'length' } = answer
  const hasBody = status !== 204 && status !== 304
  const head = `HTTP/1.1 ${status} ${reason}\r\nX-Id: ${id}\r\n${headers}`
  if (!hasBody) return `${head}\r\n`
  if (framing === 'close') return `${head}Connection: close\r\n\r\n${body}`
  if (framing === 'length') return `${head}Content-Length: ${Buffer.byteLength(body, 'latin1')}\r\n\r\n${body}`
  const half = Math.ceil(body.length / 2)
  const parts = [body.slice(0, half), body.slice(half)].filter((part) => part !== '')
  const chunks = parts.map((part) => `${part.length.toString(16)}\r\n${part}\r\n`)
  return `${head}Transfer-Encoding: chunked\r\n\r\n${chunks.join('')}0\r\n\r\n`
}

/** Every upstream answers so if nothing else was planned; HEAD gets no body. */
export const soundPlan = (id: string, method: string, answer?: Answer): Plan => {
  const text = answerText(id, answer)
  const steps: Step[] = [{ write: method === 'HEAD' ? text.slice(0, text.indexOf('\r\n\r\n') + 4) : text }]
  if (answer?.framing === 'close') steps.push({ end: 'close' })
  return { steps, isSound: true }
}
