/** The admin token. It is kept for this browser tab only, and is sent only in the Authorization header. */
import { signal } from '@preact/signals'

const name = 'fluxgate.token'

function stored(): string {
  try {
    return sessionStorage.getItem(name) ?? ''
  } catch {
    return ''
  }
}

export const token = signal(stored())
/** True once the server has rejected a request because of its token. */
export const needsToken = signal(false)

export function signIn(value: string): void {
  token.value = value
  try {
    sessionStorage.setItem(name, value)
  } catch {
    // The token then lasts until the page is reloaded.
  }
  needsToken.value = false
}

export function signOut(): void {
  token.value = ''
  try {
    sessionStorage.removeItem(name)
  } catch {
    // Nothing was stored.
  }
  needsToken.value = true
}
