import { useEffect, useRef } from 'preact/hooks'
import { streamState } from '../state/events.js'
import { version } from '../state/features.js'
import { type Language, language, setLanguage, setTheme, theme } from '../state/preferences.js'
import { linkTo } from '../state/route.js'
import { signOut, token } from '../state/session.js'
import { t } from '../text/translate.js'
import { Icon } from './icon.js'

export type PageName = 'overview' | 'rules' | 'try' | 'keys' | 'candidates' | 'whatif' | 'playground'

export const Logo = () => (
  <span class="logo">
    <svg width="26" height="26" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" class="logo-back" />
      <path d="M9 23V9h14M9 16h9" class="logo-line" />
      <circle cx="22.5" cy="21.5" r="2.5" class="logo-dot" />
    </svg>
    FluxGate
  </span>
)

export function Preferences() {
  const isDark = theme.value === 'dark'
  return (
    <div class="preferences">
      <label class="visually-hidden" for="language">
        {t('language')}
      </label>
      <select
        id="language"
        class="quiet"
        value={language.value}
        onChange={(event) => setLanguage(event.currentTarget.value as Language)}
      >
        <option value="en">English</option>
        <option value="ko">한국어</option>
      </select>
      <button
        type="button"
        class="button quiet square"
        aria-label={t(isDark ? 'lightTheme' : 'darkTheme')}
        title={t(isDark ? 'lightTheme' : 'darkTheme')}
        onClick={() => setTheme(isDark ? 'light' : 'dark')}
      >
        <Icon name={isDark ? 'sun' : 'moon'} />
      </button>
      {token.value !== '' && (
        <button
          type="button"
          class="button quiet square"
          aria-label={t('signOut')}
          title={t('signOut')}
          onClick={signOut}
        >
          <Icon name="out" />
        </button>
      )}
    </div>
  )
}

export function Navigation({ pages, current }: { readonly pages: readonly PageName[]; readonly current: PageName }) {
  const list = useRef<HTMLElement>(null)
  // On a narrow window the list scrolls.
  useEffect(() => {
    list.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [current, pages.length])
  const stream = streamState.value
  return (
    <header class="side">
      <div class="side-head">
        <Logo />
        <span class={`live live-${stream}`} role="status">
          <span class="dot" aria-hidden="true" />
          {t(stream === 'open' ? 'live' : stream === 'lost' ? 'reconnecting' : 'connecting')}
        </span>
      </div>
      <nav ref={list} aria-label={t('pages')}>
        {pages.map((name) => (
          <a key={name} href={linkTo([name])} aria-current={name === current ? 'page' : undefined}>
            <Icon name={name} />
            <span>{t(name)}</span>
          </a>
        ))}
      </nav>
      <div class="side-foot">
        <Preferences />
        {version.value !== '' && <small>FluxGate {version.value}</small>}
      </div>
    </header>
  )
}
