/** A FluxGate server, asked from the command line. The token is in the environment: a command line is seen by everybody. */
import { messageOf } from '../core/errors.js'
import { jsonText, parseJson } from '../core/json/written-json.js'
import { ServerError, UsageError } from './failure.js'

export interface ServerAnswer {
  readonly status: number
  readonly body: unknown
}

export interface ServerClient {
  readonly url: string
  /** Rejects with a `ServerError` for everything but success and the statuses that are expected. */
  ask(method: string, path: string, request?: ServerRequest): Promise<ServerAnswer>
}

export interface ServerRequest {
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** Statuses of failure that the caller understands. */
  readonly expected?: readonly number[]
}

const timeoutMs = 30_000

/** `tokens`: the variables that may hold one, the first that does wins. */
export function serverClient(given: string, tokens: readonly string[], environment = process.env): ServerClient {
  const url = baseOf(given)
  const token = tokens.map((name) => environment[name]).find((value) => value !== undefined && value !== '')
  return {
    url,
    async ask(method, path, { body, headers = {}, expected = [] } = {}) {
      const response = await fetch(`${url}${path}`, {
        method,
        headers: {
          ...(body !== undefined && { 'Content-Type': 'application/json' }),
          ...(token !== undefined && { Authorization: `Bearer ${token}` }),
          ...headers,
        },
        ...(body !== undefined && { body: jsonText(body) }),
        redirect: 'error',
        signal: AbortSignal.timeout(timeoutMs),
      }).catch((error: unknown) => {
        throw new ServerError(`${url} does not answer: ${reasonOf(error)}. Is it running, and is this its address?`, 0)
      })
      const answer = { status: response.status, body: readJson(await response.text()) }
      if (response.ok || expected.includes(response.status)) return answer
      throw failure(url, answer, tokens, token !== undefined)
    },
  }
}

function baseOf(given: string): string {
  const url = URL.canParse(given) ? new URL(given) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.search !== '' || url.hash !== '')
    throw new UsageError('--server takes the address of a FluxGate server, such as http://127.0.0.1:8090.')
  if (url.username !== '' || url.password !== '')
    throw new UsageError('--server takes no password: put the token into FLUXGATE_ADMIN_TOKEN.')
  return url.href.replace(/\/+$/, '')
}

/** `fetch` keeps the reason in its cause. */
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
  { status, body }: ServerAnswer,
  tokens: readonly string[],
  hasToken: boolean,
): ServerError {
  if (status === 401)
    return new ServerError(
      hasToken
        ? `${url} refuses the token of ${tokens.join(' or ')}.`
        : `${url} asks for a token: set ${tokens.join(' or ')}.`,
      status,
    )
  const { detail, errors = [] } = (body ?? {}) as {
    detail?: string
    errors?: readonly { path: string; message: string }[]
  }
  if (detail === undefined) return new ServerError(`${url} answered ${status}, not as a FluxGate server does.`, status)
  const lines = errors
    .filter(({ message }) => !detail.includes(message))
    .map(({ path, message }) => `\n  ${path}: ${message}`)
  return new ServerError(`${detail}${lines.join('')}`, status)
}
