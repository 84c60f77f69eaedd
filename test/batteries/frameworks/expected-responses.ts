/** Checks what one client of a framework received: one response per request, in the order of the requests. */
import { createHash } from 'node:crypto'
import type { Received } from '../http/conversation.js'
import { parseResponse, type RequestMessage, type ResponseMessage, valuesOf } from '../http/http-parser.js'
import { requestOf } from '../http/sent-stream.js'

export type Report = (kind: string, detail: string) => void

/** Acts of the application with the status of their response. An early response is sent only if the limiter is slow. */
export const acts: Readonly<Record<string, readonly number[]>> = {
  none: [200],
  slow: [200],
  unread: [200],
  throw: [500],
  early: [200, 503],
  reject: [429],
}

export function checkFrameworkAnswers(received: Received, report: Report): void {
  if (received.isSilent) report('silence', 'no response before the deadline')
  else checkAll(received, report)
}

function checkAll({ bytes, stream, hasLeft, isReset }: Received, report: Report): void {
  const partial = stream.partial === undefined ? undefined : requestOf(stream.partial)
  let [index, from] = [0, 0]
  let closes = false
  while (from < bytes.length) {
    const request = stream.requests[index]
    const method = request?.method ?? (index === stream.requests.length ? partial?.method : undefined)
    if (method === undefined || closes) {
      report('unasked bytes', `after response ${index}`)
      return
    }
    const parsed = parseResponse(bytes, method, !isReset, from)
    if (parsed.kind === 'invalid') {
      report('malformed response', parsed.reason)
      return
    }
    if (parsed.kind === 'incomplete') {
      if (!hasLeft) report('truncated response', `to request ${index}`)
      return
    }
    from = parsed.end
    if (parsed.message.status < 200) continue
    index += 1
    closes = parsed.message.closes
    if (request !== undefined) checkFinal(parsed.message, request, report)
  }
  const next = stream.requests[index]
  if (next !== undefined && !hasLeft && !closes) report('missing response', `to ${next.method} ${next.target}`)
}

function checkFinal(message: ResponseMessage, request: RequestMessage, report: Report): void {
  const { status } = message
  const id = valuesOf(request, 'x-id').join()
  const act = valuesOf(request, 'x-act').join()
  const found = valuesOf(message, 'x-id').join()
  if (found !== '' && found !== id) report('crossed answer', `a response of ${found} to ${id}`)
  if (!acts[act]?.includes(status)) report('unexpected response', `${status} to ${id}, which asks for "${act}"`)
  if (status !== 200 || request.method === 'HEAD') return
  const isRead = act !== 'unread' && (request.method === 'POST' || request.method === 'PUT')
  const expected = isRead ? `${id}:${createHash('sha1').update(request.body).digest('hex')}` : id
  const body = message.body.toString('latin1')
  if (body !== expected) report('changed response', `${JSON.stringify(body)} instead of ${JSON.stringify(expected)}`)
}
