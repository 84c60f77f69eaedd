import { signal } from '@preact/signals'
import { jsonText, parseJson } from '../../../src/core/json/source-text.js'
import { needsToken, token } from './session.js'

export interface Issue {
  readonly path: string
  readonly message: string
}

/** A problem document of the server. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly errors: readonly Issue[]

  constructor(status: number, problem: { detail?: string; title?: string; code?: string; errors?: readonly Issue[] }) {
    super(problem.detail ?? problem.title ?? `HTTP ${status}`)
    this.status = status
    this.code = problem.code ?? ''
    this.errors = problem.errors ?? []
  }
}

/** The server could not be reached. */
export class OfflineError extends Error {}

/** False while the server does not respond. */
export const isOnline = signal(true)

export interface ApiReply<T> {
  readonly status: number
  readonly body: T
  readonly etag: string | null
}

export interface ApiOptions {
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

/** Sends a request to the API and parses the JSON response. Throws `ApiError` or `OfflineError`. */
export async function request<T>(method: string, path: string, options: ApiOptions = {}): Promise<ApiReply<T>> {
  const text = options.body === undefined ? undefined : jsonText(options.body)
  const response = await send(method, path, text, options)
  const body = await bodyOf(response)
  if (response.ok) return { status: response.status, body: body as T, etag: response.headers.get('etag') }
  if (response.status === 401) needsToken.value = true
  throw new ApiError(response.status, typeof body === 'object' && body !== null ? body : {})
}

export const get = async <T>(path: string, signal?: AbortSignal): Promise<T> =>
  (await request<T>('GET', path, signal ? { signal } : {})).body

/** The response, or undefined if the server responds that there is no such document. */
export async function found<T>(loading: Promise<T>): Promise<T | undefined> {
  try {
    return await loading
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined
    throw error
  }
}

interface PageOf<T> {
  readonly cursor: string | null
  readonly [name: string]: readonly T[] | string | null
}

/** Loads all pages of a list. `name` is the member that has the entries. */
export async function loadPages<T>(path: string, name: string, signal?: AbortSignal): Promise<readonly T[]> {
  const entries: T[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const query: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const page: PageOf<T> = await get(`${path}?limit=100${query}`, signal)
    entries.push(...(page[name] as readonly T[]))
    cursor = page.cursor
  }
  return entries
}

export async function send(
  method: string,
  path: string,
  body: string | undefined,
  { headers, signal }: ApiOptions = {},
): Promise<Response> {
  try {
    const response = await fetch(path, {
      method,
      headers: {
        Accept: 'application/json',
        ...(token.value && { Authorization: `Bearer ${token.value}` }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body }),
      ...(signal && { signal }),
      credentials: 'omit',
      cache: 'no-store',
    })
    isOnline.value = true
    return response
  } catch (error) {
    if (signal?.aborted) throw error
    isOnline.value = false
    throw new OfflineError('The server does not respond.', { cause: error })
  }
}

async function bodyOf(response: Response): Promise<unknown> {
  const text = await response.text()
  if (text === '' || !/json/.test(response.headers.get('content-type') ?? '')) return undefined
  try {
    // Keeps the exact text of `attributes`.
    return parseJson(text)
  } catch {
    return undefined
  }
}

/** Joins ids to a path. */
export const pathOf = (...segments: readonly string[]): string => `/${segments.map(encodeURIComponent).join('/')}`
