import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, OfflineError } from '../state/api.js'
import { t } from '../text/translate.js'
import { Icon } from './icon.js'

export const Loading = () => (
  <div class="state" role="status">
    <span class="spinner" aria-hidden="true" />
    {t('loading')}
  </div>
)

export const Empty = ({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) => (
  <div class="state">
    <strong>{title}</strong>
    {children && <p>{children}</p>}
  </div>
)

export function Failure({ error, retry }: { readonly error: unknown; readonly retry?: (() => void) | undefined }) {
  return (
    <div class="state state-bad" role="alert">
      <Icon name="warning" size={22} />
      <strong>{error instanceof OfflineError ? t('offline') : messageOf(error)}</strong>
      {error instanceof OfflineError && <p>{t('offlineHelp')}</p>}
      {retry && (
        <button type="button" class="button" onClick={retry}>
          {t('retry')}
        </button>
      )}
    </div>
  )
}

export function messageOf(error: unknown): string {
  if (error instanceof OfflineError) return t('offline')
  if (error instanceof ApiError) {
    const issues = error.errors.map(({ path, message }) => (path ? `${path}: ${message}` : message))
    return issues.length > 0 && !issues.some((issue) => error.message.includes(issue))
      ? `${error.message} ${issues.join(' ')}`
      : error.message
  }
  return error instanceof Error ? error.message : String(error)
}

export interface Loaded<T> {
  readonly data: T | undefined
  readonly error: unknown
  readonly reload: () => void
}

/** Shown while there is no data yet: its state, or why it failed to load. */
export const LoadState = ({ of: { error, reload } }: { readonly of: Loaded<unknown> }) =>
  error === undefined ? <Loading /> : <Failure error={error} retry={reload} />

/**
 * Loads data when a dependency changes, and every `everyMs` while the page is visible. The previous data stays while newer data
 * is loading or fails to load.
 */
export function useLoaded<T>(
  load: (signal: AbortSignal) => Promise<T>,
  deps: readonly unknown[],
  everyMs = 0,
): Loaded<T> {
  const [data, setData] = useState<T>()
  const [error, setError] = useState<unknown>()
  const [round, setRound] = useState(0)
  const last = useRef<readonly unknown[]>(deps)
  useEffect(() => {
    const stop = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    if (last.current.some((dep, i) => dep !== deps[i])) setData(undefined)
    last.current = deps
    const run = async (): Promise<void> => {
      try {
        if (!document.hidden || round === 0) {
          const loaded = await load(stop.signal)
          if (stop.signal.aborted) return
          setData(loaded)
          setError(undefined)
        }
      } catch (failure) {
        if (stop.signal.aborted) return
        setError(failure)
      }
      if (everyMs > 0) timer = setTimeout(run, everyMs)
    }
    void run()
    return () => {
      stop.abort()
      clearTimeout(timer)
    }
  }, [...deps, round])
  return { data, error, reload: () => setRound((it) => it + 1) }
}
