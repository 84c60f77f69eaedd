import type { IncomingMessage, ServerResponse } from 'node:http'
import { ApiProblem } from './api-problem.js'

export const maxBodyBytes = 2 ** 20

const nothing = Buffer.alloc(0)

/**
 * Reads a body and calls `done` once: with the bytes, or with an error as soon as the body is too large. Uses a callback,
 * because every check passes here and a promise would slow it down.
 */
export function readBody(request: IncomingMessage, done: (error: unknown, body: Buffer) => void): void {
  let first: Buffer | undefined
  let others: Buffer[] | undefined
  let size = 0
  let isDone = false
  // Listeners are not removed: removing them costs more than ignoring later events.
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

const tooLarge = (): ApiProblem =>
  new ApiProblem('FLUXGATE_BODY_TOO_LARGE', `The body must not exceed ${maxBodyBytes} bytes.`)

/** True if the rest of the body may be too long to be read just to keep the connection open. */
export const hasLongBody = ({ headers, complete }: IncomingMessage): boolean =>
  !complete && (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > maxBodyBytes)

/** How long a client may keep sending after an early response, before the connection is closed. */
const lingerMs = 1_000

/**
 * Sends a response and drains the request before it closes. Closing while the client still sends would reset the connection,
 * and the client would lose the response.
 */
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
 * Checks size, content type and encoding before the body is read. Only JSON is accepted: HTML forms of other sites can send
 * other types without a CORS preflight.
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
      ? 'Compressed bodies are not supported. Send the body without Content-Encoding.'
      : 'The body must be JSON, with "Content-Type: application/json".',
    { headers: { 'Accept-Post': 'application/json' } },
  )
}

/** True for JSON types, with an optional UTF-8 charset. Runs in linear time, because the client controls the header. */
function isJsonType(type: string): boolean {
  const [media = '', ...parameters] = type.split(';').map((part) => part.trim())
  if (parameters.at(-1) === '') parameters.pop()
  return jsonMedia.test(media) && parameters.length <= 1 && parameters.every((parameter) => utf8.test(parameter))
}

const jsonMedia = /^application\/(?:[\w.-]+\+)?json$/i
const utf8 = /^charset\s*=\s*"?utf-8"?$/i
