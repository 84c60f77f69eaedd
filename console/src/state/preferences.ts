/** Theme and language. Both are kept in localStorage; the token never is. */
import { effect, signal } from '@preact/signals'

export type Theme = 'dark' | 'light'
const languages = ['en', 'ko'] as const
export type Language = (typeof languages)[number]

function stored(name: string): string | null {
  try {
    return localStorage.getItem(name)
  } catch {
    return null
  }
}

function store(name: string, value: string): void {
  try {
    localStorage.setItem(name, value)
  } catch {
    // The browser blocks storage. The preference then lasts until the page is closed.
  }
}

const prefersLight = matchMedia('(prefers-color-scheme: light)')
const firstTheme = (): Theme => {
  const known = stored('fluxgate.theme')
  if (known === 'dark' || known === 'light') return known
  return prefersLight.matches ? 'light' : 'dark'
}

const firstLanguage = (): Language => {
  const known = stored('fluxgate.language') ?? navigator.language.slice(0, 2)
  return languages.find((language) => language === known) ?? 'en'
}

export const theme = signal<Theme>(firstTheme())
export const language = signal<Language>(firstLanguage())

effect(() => {
  document.documentElement.dataset.theme = theme.value
})
effect(() => {
  document.documentElement.lang = language.value
})

export function setTheme(next: Theme): void {
  theme.value = next
  store('fluxgate.theme', next)
}

export function setLanguage(next: Language): void {
  language.value = next
  store('fluxgate.language', next)
}
