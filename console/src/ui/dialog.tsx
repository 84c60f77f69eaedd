import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { t } from '../text/translate.js'
import { Icon } from './icon.js'
import { messageOf } from './states.js'

interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
  readonly isWide?: boolean
}

/** A modal dialog. The browser keeps the focus inside and closes it with Escape. The focus then returns to where it was. */
export function Dialog({ title, onClose, children, isWide = false }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  useEffect(() => {
    const opener = document.activeElement
    element.current?.showModal()
    // The browser returns the focus only if a dialog is closed while it is in the page. This one is removed.
    return () => {
      if (opener instanceof HTMLElement) queueMicrotask(() => opener.focus())
    }
  }, [])
  return (
    <dialog
      ref={element}
      class={isWide ? 'dialog dialog-wide' : 'dialog'}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
    >
      <div class="dialog-head">
        <h2 id={titleId}>{title}</h2>
        <button type="button" class="button quiet square" aria-label={t('close')} onClick={onClose}>
          <Icon name="close" />
        </button>
      </div>
      {children}
    </dialog>
  )
}

interface DialogFormProps {
  /** The text of the button that submits. */
  readonly text: string
  readonly isReady?: boolean
  readonly onSave: () => Promise<unknown>
  readonly onClose: () => void
  readonly children: ComponentChildren
}

/** A form in a dialog. It stays open with the message of the server if saving fails, so that nothing that was entered is lost. */
export function DialogForm({ text, isReady = true, onSave, onClose, children }: DialogFormProps) {
  const [problem, setProblem] = useState('')
  const [isBusy, setBusy] = useState(false)
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    setProblem('')
    setBusy(true)
    try {
      await onSave()
      onClose()
    } catch (error) {
      setProblem(messageOf(error))
      setBusy(false)
    }
  }
  return (
    <form class="form" onSubmit={submit}>
      {children}
      {problem && (
        <p class="bad" role="alert">
          {problem}
        </p>
      )}
      <div class="dialog-foot">
        <button type="button" class="button" onClick={onClose}>
          {t('cancel')}
        </button>
        <button type="submit" class="button primary" disabled={!isReady || isBusy}>
          {text}
        </button>
      </div>
    </form>
  )
}
