/** The page and its parameters are in the fragment of the URL, so that links work on any host and nothing is sent to it. */
import { signal } from '@preact/signals'

export interface Route {
  /** The first segment is the page: `rules`, then ids. */
  readonly segments: readonly string[]
  readonly query: URLSearchParams
}

function read(): Route {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?')
  return { segments: path.split('/').filter(Boolean).map(decoded), query: new URLSearchParams(query) }
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

export const route = signal<Route>(read())

/** Browsers ignore or reject more than ten to twenty changes of the URL per second, so it follows the state with a delay. */
const urlDelayMs = 150
let urlTimer: ReturnType<typeof setTimeout> | undefined

addEventListener('hashchange', () => {
  clearTimeout(urlTimer)
  urlTimer = undefined
  route.value = read()
})

export function linkTo(segments: readonly string[], query: Readonly<Record<string, string>> = {}): string {
  const text = new URLSearchParams(query).toString()
  return `#/${segments.map(encodeURIComponent).join('/')}${text && `?${text}`}`
}

export function navigate(segments: readonly string[], query?: Readonly<Record<string, string>>): void {
  location.hash = linkTo(segments, query)
}

/** Changes the query without a new entry in the browser's history, for state that changes while the user drags. */
export function replaceQuery(query: Readonly<Record<string, string>>): void {
  route.value = { segments: route.peek().segments, query: new URLSearchParams(query) }
  urlTimer ??= setTimeout(updateUrl, urlDelayMs)
}

/** Writes the current state to the URL at once. */
export function updateUrl(): void {
  if (urlTimer === undefined) return
  clearTimeout(urlTimer)
  urlTimer = undefined
  const { segments, query } = route.peek()
  history.replaceState(null, '', linkTo(segments, Object.fromEntries(query)))
}
