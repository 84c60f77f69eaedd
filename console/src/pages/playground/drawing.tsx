import { useRef, useState } from 'preact/hooks'
import { t } from '../../text/translate.js'
import { maxDrawn, slots } from './scenario.js'

interface DrawingProps {
  readonly counts: readonly number[]
  readonly onChange: (counts: readonly number[]) => void
}

/** Traffic that is drawn with the pointer, or with the arrow keys: left and right select a slot, up and down change it. */
export function Drawing({ counts, onChange }: DrawingProps) {
  const [selected, setSelected] = useState(0)
  const element = useRef<HTMLDivElement>(null)
  const set = (slot: number, count: number): void =>
    onChange(counts.map((old, i) => (i === slot ? Math.min(maxDrawn, Math.max(0, count)) : old)))
  const draw = (event: PointerEvent): void => {
    const box = element.current?.getBoundingClientRect()
    if (box === undefined || event.buttons === 0) return
    const slot = Math.floor(((event.clientX - box.left) / box.width) * slots)
    if (slot < 0 || slot >= slots) return
    setSelected(slot)
    set(slot, Math.round((1 - (event.clientY - box.top) / box.height) * maxDrawn))
  }
  const press = (event: KeyboardEvent): void => {
    const moves = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
    const changes = { ArrowUp: 1, ArrowDown: -1, PageUp: 5, PageDown: -5 }[event.key]
    if (moves === undefined && changes === undefined) return
    event.preventDefault()
    if (moves !== undefined) setSelected(Math.min(slots - 1, Math.max(0, selected + moves)))
    if (changes !== undefined) set(selected, (counts[selected] ?? 0) + changes)
  }
  return (
    <div
      ref={element}
      class="drawing"
      role="slider"
      tabIndex={0}
      aria-label={t('drawTraffic')}
      aria-valuemin={0}
      aria-valuemax={maxDrawn}
      aria-valuenow={counts[selected] ?? 0}
      aria-valuetext={t('drawnSlot', { slot: selected + 1, count: counts[selected] ?? 0 })}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId)
        draw(event)
      }}
      onPointerMove={draw}
      onKeyDown={press}
    >
      {counts.map((count, i) => (
        <span key={i} class={i === selected ? 'is-selected' : ''} style={{ height: `${(100 * count) / maxDrawn}%` }} />
      ))}
    </div>
  )
}
