import type { IncomingMessage, ServerResponse } from 'node:http'
import { ApiProblem } from './api-problem.js'

export const maxBodyBytes = 2 ** 20

const nothing = Buffer.alloc(0)

/** All of a body, or a problem as soon as it is too large. Calls back once; not a promise, because every check comes by here. */
export function readBody(request: IncomingMessage, done: (error: unknown, body: Buffer) => void): void {
  let first: Buffer | undefined
  let others: Buffer[] | undefined
  let size = 0
  let isDone = false
  // Listeners stay: taking them away costs more than to ignore what they hear afterwards.
  const finish = (error?: unknown): void => {
    if (isDone) return
    isDone = true
    done(error, error === undefined ? (others ? Buffer.concat(others, size) : (first ?? nothing)) : nothing)
  }
  request.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (isDone) return
    if (size > maxBodyBytes) finish(tooLarge())
    else if (first === undefined) first = chunk
    else if (others === undefined) others = [first, chunk]
    else others.push(chunk)
  })
  request.on('end', finish)
  request.on('error', finish)
}

const tooLarge = (): ApiProblem => new ApiProblem('FLUXGATE_BODY_TOO_LARGE', `A body may have ${maxBodyBytes} bytes.`)

/** Whether more of a body may follow than is read for the sake of the connection. */
export const mayBeLong = ({ headers, complete }: IncomingMessage): boolean =>
  !complete && (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > maxBodyBytes)

/** How long a client has to read an answer that came while it was still sending. */
const lingerMs = 1_000

/** Closed while the client is sending, a connection would be reset, and a reset takes the answer with it. */
export function endAfterBody(
  request: IncomingMessage,
  response: ServerResponse,
  body: string | Buffer | undefined,
): void {
  if (body !== undefined) response.write(body)
  const end = (): void => {
    clearTimeout(timer)
    response.end()
  }
  const timer = setTimeout(end, lingerMs)
  request
    .on('error', () => {})
    .once('close', end)
    .once('end', end)
    .resume()
}

/**
 * What can be told of a body before it is read: that it is not too large, and JSON, uncompressed. Nothing else is taken,
 * because a form of another site can send everything that needs no such header.
 */
export function assertReadable({ headers }: IncomingMessage): void {
  if (Number(headers['content-length'] ?? 0) > maxBodyBytes) throw tooLarge()
  const type = headers['content-type'] ?? ''
  const isJson = type === 'application/json' || isJsonType(type)
  const coding = headers['content-encoding']
  if (isJson && (coding === undefined || coding.toLowerCase() === 'identity')) return
  throw new ApiProblem(
    'FLUXGATE_MEDIA_TYPE_UNSUPPORTED',
    isJson
      ? 'The body is compressed; send it as it is.'
      : 'The body must be JSON, with "Content-Type: application/json".',
    { headers: { 'Accept-Post': 'application/json' } },
  )
}

/** JSON in UTF-8, with or without saying so. In linear time: the header is the client's, and may be long. */
function isJsonType(type: string): boolean {
  const [media = '', ...parameters] = type.split(';').map((part) => part.trim())
  if (parameters.at(-1) === '') parameters.pop()
  return jsonMedia.test(media) && parameters.length <= 1 && parameters.every((parameter) => utf8.test(parameter))
}

const jsonMedia = /^application\/(?:[\w.-]+\+)?json$/i
const utf8 = /^charset\s*=\s*"?utf-8"?$/i
