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
  /** The counts after the last change, which the page may not have rendered yet. */
  const latest = useRef(counts)
  latest.current = counts
  const change = (countAt: (slot: number, old: number) => number): void => {
    latest.current = latest.current.map((old, slot) => Math.min(maxDrawn, Math.max(0, countAt(slot, old))))
    onChange(latest.current)
  }
  /** The last slot of this stroke. A fast pointer skips slots, so each event draws a line from there. */
  const stroke = useRef<number | undefined>(undefined)
  const draw = (event: PointerEvent): void => {
    const box = element.current?.getBoundingClientRect()
    if (box === undefined || event.buttons === 0) return
    const to = Math.min(slots - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * slots)))
    const count = Math.round((1 - (event.clientY - box.top) / box.height) * maxDrawn)
    const from = stroke.current ?? to
    const start = latest.current[from] ?? 0
    const isBetween = (slot: number): boolean => slot >= Math.min(from, to) && slot <= Math.max(from, to)
    const share = (slot: number): number => (from === to ? 1 : (slot - from) / (to - from))
    stroke.current = to
    setSelected(to)
    change((slot, old) => (isBetween(slot) ? Math.round(start + share(slot) * (count - start)) : old))
  }
  const press = (event: KeyboardEvent): void => {
    const moves = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
    const changes = { ArrowUp: 1, ArrowDown: -1, PageUp: 5, PageDown: -5 }[event.key]
    if (moves === undefined && changes === undefined) return
    event.preventDefault()
    if (moves !== undefined) setSelected(Math.min(slots - 1, Math.max(0, selected + moves)))
    if (changes !== undefined) change((slot, old) => (slot === selected ? old + changes : old))
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
        stroke.current = undefined
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
