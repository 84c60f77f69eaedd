import { useState } from 'preact/hooks'
import { t } from '../../text/translate.js'
import { Icon } from '../../ui/icon.js'

interface LogDropProps {
  readonly file: File | undefined
  readonly onChoose: (file: File) => void
}

/** Where the user drops an access log, or chooses one. */
export function LogDrop({ file, onChoose }: LogDropProps) {
  const [isOver, setOver] = useState(false)
  const choose = (next: File | undefined): void => {
    if (next !== undefined) onChoose(next)
  }
  return (
    <label
      class={isOver ? 'drop is-over' : 'drop'}
      onDragOver={(event) => {
        event.preventDefault()
        setOver(true)
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault()
        setOver(false)
        choose(event.dataTransfer?.files[0])
      }}
    >
      <Icon name="upload" size={26} />
      <strong>{file === undefined ? t('dropLog') : file.name}</strong>
      <span class="muted small">
        {file === undefined ? t('logFormats') : t('megabytes', { size: (file.size / 1e6).toFixed(1) })}
      </span>
      <input type="file" class="visually-hidden" onChange={({ currentTarget: { files } }) => choose(files?.[0])} />
    </label>
  )
}
