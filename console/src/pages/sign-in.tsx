import { useState } from 'preact/hooks'
import { ApiError, request } from '../state/api.js'
import { signIn, token } from '../state/session.js'
import { t } from '../text/translate.js'
import { Logo, Preferences } from '../ui/navigation.js'
import { messageOf } from '../ui/states.js'

/** Asks for the admin token and verifies it with the server before it is kept. */
export function SignIn() {
  const [value, setValue] = useState('')
  const [problem, setProblem] = useState('')
  const [isBusy, setBusy] = useState(false)
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    setBusy(true)
    setProblem('')
    const previous = token.value
    token.value = value.trim()
    try {
      await request('GET', '/info')
      signIn(value.trim())
    } catch (error) {
      token.value = previous
      setProblem(error instanceof ApiError && error.status === 401 ? t('tokenWrong') : messageOf(error))
      setBusy(false)
    }
  }
  return (
    <main class="sign-in">
      <form class="card" onSubmit={submit}>
        <Logo />
        <h1>{t('signIn')}</h1>
        <p class="muted">{t('signInHelp')}</p>
        <label class="field">
          <span>{t('token')}</span>
          <input
            type="password"
            autocomplete="current-password"
            required
            autofocus
            value={value}
            aria-describedby="sign-in-problem"
            onInput={(event) => setValue(event.currentTarget.value)}
          />
        </label>
        <p id="sign-in-problem" class="bad" role="alert">
          {problem}
        </p>
        <button type="submit" class="button primary" disabled={isBusy || value.trim() === ''}>
          {t('signIn')}
        </button>
        <p class="muted small">{t('tokenStored')}</p>
      </form>
      <Preferences />
    </main>
  )
}
