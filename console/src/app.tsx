import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Overview } from './pages/overview/overview.js'
import { SignIn } from './pages/sign-in.js'
import { isOnline } from './state/api.js'
import { closeEvents, openEvents, streamState } from './state/events.js'
import { hasRoute, loadFeatures } from './state/features.js'
import { route } from './state/route.js'
import { needsToken } from './state/session.js'
import { t } from './text/translate.js'
import { Navigation, type PageName } from './ui/navigation.js'
import { Failure, Loading } from './ui/states.js'
import { Toasts } from './ui/toast.js'

type Page = ComponentType

/** Pages other than the first one are separate files, loaded when they are opened. */
const pages: Readonly<Partial<Record<PageName, () => Promise<Page> | Page>>> = {
  overview: () => Overview,
  rules: () => import('./pages/rules/rules.js').then((it) => it.Rules),
  try: () => import('./pages/try/try-it.js').then((it) => it.TryIt),
  keys: () => import('./pages/keys/keys.js').then((it) => it.Keys),
  candidates: () => import('./pages/candidates/candidates.js').then((it) => it.Candidates),
  whatif: () => import('./pages/what-if/what-if.js').then((it) => it.WhatIf),
  playground: () => import('./pages/playground/playground.js').then((it) => it.Playground),
}

const open = (name: PageName): Promise<Page> | Page => (pages[name] ?? pages.overview ?? (() => Overview))()

const isPage = (name: string): name is PageName => Object.hasOwn(pages, name)

/** Pages that older servers cannot serve. */
const requiredRoutes: Readonly<Partial<Record<PageName, string>>> = {
  try: 'POST /api/ratelimit/explain',
  candidates: 'GET /api/candidates',
}

/** The playground needs no server. All other pages need its routes. */
const needsServer = (page: PageName): boolean => page !== 'playground'

export function App() {
  const isSignInShown = needsToken.value
  useEffect(() => {
    if (isSignInShown) return closeEvents()
    loadFeatures().catch(() => {})
    openEvents()
  }, [isSignInShown])
  // A server that was restarted may have other routes.
  const stream = streamState.value
  useEffect(() => {
    if (stream === 'open') loadFeatures().catch(() => {})
  }, [stream])
  const [wanted = 'overview'] = route.value.segments
  const page = isPage(wanted) ? wanted : 'overview'
  const shown = (Object.keys(pages) as PageName[]).filter((name) => hasRoute(requiredRoutes[name] ?? ''))
  if (isSignInShown && needsServer(page)) return <SignIn />
  return (
    <div class="shell">
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        {t('skip')}
      </button>
      <Navigation pages={shown} current={page} />
      <main id="main" tabIndex={-1}>
        {!isOnline.value && (
          <div class="banner" role="alert">
            {t('offlineBanner')}
          </div>
        )}
        <CurrentPage key={page} name={page} />
      </main>
      <Toasts />
    </div>
  )
}

function CurrentPage({ name }: { readonly name: PageName }) {
  const [state, setState] = useState<{ page?: Page; error?: unknown }>(() => {
    const found = open(name)
    return found instanceof Promise ? {} : { page: found }
  })
  useEffect(() => {
    document.title = `${t(name)} · FluxGate`
    const found = open(name)
    if (found instanceof Promise)
      found.then(
        (page) => setState({ page }),
        (error: unknown) => setState({ error }),
      )
  }, [name])
  const { page: Page, error } = state
  if (error !== undefined) return <Failure error={error} retry={() => location.reload()} />
  return Page ? <Page /> : <Loading />
}
