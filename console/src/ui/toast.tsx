import { signal } from '@preact/signals'
import { t } from '../text/translate.js'
import { Icon } from './icon.js'
import { messageOf } from './states.js'

interface Toast {
  readonly id: number
  readonly text: string
  readonly isError: boolean
  readonly undo?: (() => void) | undefined
}

const toasts = signal<readonly Toast[]>([])
let lastId = 0

const remove = (id: number): void => {
  toasts.value = toasts.value.filter((toast) => toast.id !== id)
}

/** Shows a message. With `undo` it stays longer and has a button. Errors stay until they are closed. */
export function notify(text: string, { isError = false, undo }: { isError?: boolean; undo?: () => void } = {}): void {
  const id = ++lastId
  toasts.value = [...toasts.value, { id, text, isError, undo }].slice(-4)
  if (!isError) setTimeout(() => remove(id), undo ? 15_000 : 5_000)
}

export const notifyError = (error: unknown): void => notify(messageOf(error), { isError: true })

export const Toasts = () => (
  <div class="toasts" role="status" aria-live="polite">
    {toasts.value.map(({ id, text, isError, undo }) => (
      <div key={id} class={isError ? 'toast toast-bad' : 'toast'}>
        <Icon name={isError ? 'warning' : 'check'} />
        <span>{text}</span>
        {undo && (
          <button
            type="button"
            class="button small"
            onClick={() => {
              remove(id)
              undo()
            }}
          >
            <Icon name="undo" size={14} /> {t('undo')}
          </button>
        )}
        <button type="button" class="button quiet square small" aria-label={t('close')} onClick={() => remove(id)}>
          <Icon name="close" size={14} />
        </button>
      </div>
    ))}
  </div>
)
