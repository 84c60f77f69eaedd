/** HTTP client for a FluxGate server. The token comes from the environment, because process arguments are visible to all users. */
import { messageOf } from '../core/errors.js'
import { jsonText, parseJson } from '../core/json/source-text.js'
import { ServerError, UsageError } from './failure.js'

export interface ServerResponse {
  readonly status: number
  readonly body: unknown
}

export interface ServerClient {
  readonly url: string
  /** Rejects with a `ServerError` unless the response is 2xx or one of `expected`. */
  request(method: string, path: string, request?: ServerRequest): Promise<ServerResponse>
}

export interface ServerRequest {
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** Error statuses that the caller handles itself. */
  readonly expected?: readonly number[]
}

const timeoutMs = 30_000

/** `tokens` names environment variables; the first that is set provides the token. */
export function serverClient(address: string, tokens: readonly string[], environment = process.env): ServerClient {
  const url = baseOf(address)
  const token = tokens.map((name) => environment[name]).find((value) => value !== undefined && value !== '')
  return {
    url,
    async request(method, path, { body, headers = {}, expected = [] } = {}) {
      const sent = {
        method,
        headers: {
          ...(body !== undefined && { 'Content-Type': 'application/json' }),
          ...(token !== undefined && { Authorization: `Bearer ${token}` }),
          ...headers,
        },
        ...(body !== undefined && { body: jsonText(body) }),
      }
      const answer = await exchange(`${url}${path}`, sent).catch((error: unknown) => {
        throw new ServerError(
          `Cannot reach ${url}: ${reasonOf(error)}. Check that the server is running and that the URL is correct.`,
          0,
        )
      })
      const isExpected = (answer.status >= 200 && answer.status < 300) || expected.includes(answer.status)
      if (isExpected && (answer.body !== undefined || answer.status === 204)) return answer
      throw failure(url, answer, tokens, token !== undefined)
    },
  }
}

/** Sends a request and reads the response. The body is undefined if it is not JSON. */
async function exchange(url: string, request: RequestInit): Promise<ServerResponse> {
  const response = await fetch(url, { ...request, redirect: 'error', signal: AbortSignal.timeout(timeoutMs) })
  return { status: response.status, body: readJson(await response.text()) }
}

function baseOf(address: string): string {
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.search !== '' || url.hash !== '')
    throw new UsageError('--server must be the URL of a FluxGate server, such as http://127.0.0.1:8090.')
  if (url.username !== '' || url.password !== '')
    throw new UsageError('--server must not contain credentials. Put the token into FLUXGATE_ADMIN_TOKEN.')
  return url.href.replace(/\/+$/, '')
}

/** `fetch` reports network errors as a generic message; the actual reason is in `cause`. */
const reasonOf = (error: unknown): string =>
  error instanceof Error && error.cause instanceof Error ? error.cause.message || error.message : messageOf(error)

function readJson(text: string): unknown {
  try {
    return text === '' ? undefined : parseJson(text)
  } catch {
    return undefined
  }
}

function failure(
  url: string,
  { status, body }: ServerResponse,
  tokens: readonly string[],
  hasToken: boolean,
): ServerError {
  if (status === 401)
    return new ServerError(
      hasToken
        ? `${url} rejected the token. Check ${tokens.join(' or ')}.`
        : `${url} requires a token. Set ${tokens.join(' or ')}.`,
      status,
    )
  const { detail, errors = [] } = (body ?? {}) as {
    detail?: unknown
    errors?: readonly { path: string; message: string }[]
  }
  if (typeof detail !== 'string')
    return new ServerError(
      `${url} responded with status ${status}, but not as a FluxGate server. Check the URL.`,
      status,
    )
  const lines = errors
    .filter(({ message }) => !detail.includes(message))
    .map(({ path, message }) => `\n  ${path}: ${message}`)
  return new ServerError(`${detail}${lines.join('')}`, status)
}
