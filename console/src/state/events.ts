/**
 * Server-sent events. `EventSource` cannot send the token in a header, so the stream is read with `fetch`. A lost stream is
 * opened again, with growing pauses. A hidden page closes it, because browsers open at most six connections to a host over
 * HTTP/1.1, and a stream occupies one. Events are collected and published once per frame, so that a thousand events per second
 * render as often as one.
 */
import { signal } from '@preact/signals'
import { isOnline, send } from './api.js'
import { needsToken } from './session.js'
import type { RecentDecision } from './statistics.js'

export type StreamState = 'connecting' | 'open' | 'lost'

export const streamState = signal<StreamState>('connecting')
/** Newest first. */
export const liveRejections = signal<readonly RecentDecision[]>([])
/** Changes with every reload of the rules, and when a stream that may have missed one is open again, so that pages can refresh. */
export const reloads = signal(0)
export const healthChanges = signal(0)

const kept = 200
const firstPauseMs = 500
const longestPauseMs = 8_000

let stop: AbortController | undefined

/** Opens the stream and keeps it open while the page is visible, until `closeEvents`. */
export function openEvents(): void {
  if (stop !== undefined) return
  stop = new AbortController()
  void keepOpen(stop.signal)
}

export function closeEvents(): void {
  stop?.abort()
  stop = undefined
}

async function keepOpen(signal: AbortSignal): Promise<void> {
  let pauseMs = firstPauseMs
  let wasOpen = false
  while (!signal.aborted) {
    await untilVisible(signal)
    const request = abortedWhenHidden(signal)
    try {
      const headers = { Accept: 'text/event-stream' }
      const response = await send('GET', '/api/events', undefined, { signal: request.signal, headers })
      if (response.status === 401) {
        needsToken.value = true
        closeEvents()
        return
      }
      if (response.ok && response.body !== null) {
        streamState.value = 'open'
        pauseMs = firstPauseMs
        if (wasOpen) reloads.value += 1
        wasOpen = true
        await read(response.body)
      }
    } catch {
      // Reported by `streamState`; the loop connects again.
    }
    const isHidden = request.signal.aborted
    request.abort()
    if (signal.aborted) return
    streamState.value = isHidden ? 'connecting' : 'lost'
    if (isHidden) continue
    await pause(pauseMs)
    pauseMs = Math.min(longestPauseMs, pauseMs * 2)
    if (!isOnline.value) pauseMs = Math.min(pauseMs, 2_000)
  }
}

function untilVisible(stop: AbortSignal): Promise<void> {
  if (!document.hidden) return Promise.resolve()
  return new Promise((resolve) => {
    document.addEventListener('visibilitychange', () => resolve(), { once: true, signal: stop })
    stop.addEventListener('abort', () => resolve(), { once: true })
  })
}

function abortedWhenHidden(stop: AbortSignal): AbortController {
  const request = new AbortController()
  const { signal } = request
  stop.addEventListener('abort', () => request.abort(), { signal })
  const abortIfHidden = () => document.hidden && request.abort()
  document.addEventListener('visibilitychange', abortIfHidden, { signal })
  return request
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

async function read(body: ReadableStream<Uint8Array>): Promise<void> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader()
  let open = ''
  for (;;) {
    const { value, done } = await reader.read()
    if (done) return
    open += value
    const events = open.split('\n\n')
    open = events.pop() ?? ''
    for (const event of events) dispatch(event)
  }
}

function dispatch(text: string): void {
  const name = /^event: (.*)$/m.exec(text)?.[1]
  const data = /^data: (.*)$/m.exec(text)?.[1]
  if (data === undefined) return
  if (name === 'decision') collect(JSON.parse(data) as RecentDecision)
  else if (name === 'reload') reloads.value += 1
  else if (name === 'health') healthChanges.value += 1
}

let pending: RecentDecision[] = []

function collect(decision: RecentDecision): void {
  if (decision.allowed) return
  if (pending.push(decision) === 1) requestAnimationFrame(publish)
  // A hidden page has no frames.
  else if (pending.length > kept) pending = pending.slice(-kept)
}

function publish(): void {
  liveRejections.value = [...pending.reverse(), ...liveRejections.value].slice(0, kept)
  pending = []
}
