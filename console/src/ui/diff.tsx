import { useMemo } from 'preact/hooks'
import { whole } from '../text/format.js'
import { t } from '../text/translate.js'

export interface DiffLine {
  readonly kind: 'same' | 'added' | 'removed'
  readonly text: string
}

/** A larger table of common lines would block the page. Such a change is shown as removed and added lines. */
const maxCells = 4_000_000

/** Removed and added lines, by the longest common subsequence. */
function diffLines(before: string, after: string): DiffLine[] {
  const old = before === '' ? [] : before.split('\n')
  const fresh = after === '' ? [] : after.split('\n')
  let start = 0
  while (start < old.length && start < fresh.length && old[start] === fresh[start]) start += 1
  let end = 0
  while (end < Math.min(old.length, fresh.length) - start && old.at(-1 - end) === fresh.at(-1 - end)) end += 1
  const same = (text: string): DiffLine => ({ kind: 'same', text })
  return [
    ...old.slice(0, start).map(same),
    ...changedLines(old.slice(start, old.length - end), fresh.slice(start, fresh.length - end)),
    ...old.slice(old.length - end).map(same),
  ]
}

function changedLines(old: readonly string[], fresh: readonly string[]): DiffLine[] {
  const removed = (text: string): DiffLine => ({ kind: 'removed', text })
  const added = (text: string): DiffLine => ({ kind: 'added', text })
  if (old.length * fresh.length > maxCells) return [...old.map(removed), ...fresh.map(added)]
  const common: Uint32Array[] = Array.from({ length: old.length + 1 }, () => new Uint32Array(fresh.length + 1))
  const at = (i: number, j: number): number => common[i]?.[j] ?? 0
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = fresh.length - 1; j >= 0; j--) {
      const row = common[i] as Uint32Array
      row[j] = old[i] === fresh[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
    }
  const lines: DiffLine[] = []
  let i = 0
  let j = 0
  while (i < old.length || j < fresh.length) {
    if (i < old.length && j < fresh.length && old[i] === fresh[j]) {
      lines.push({ kind: 'same', text: old[i] as string })
      i += 1
      j += 1
    } else if (i < old.length && (j === fresh.length || at(i + 1, j) >= at(i, j + 1)))
      lines.push(removed(old[i++] as string))
    else lines.push(added(fresh[j++] as string))
  }
  return lines
}

interface Hunk {
  /** Unchanged lines that are not shown. */
  readonly skipped: number
  readonly lines: readonly DiffLine[]
}

const context = 3
const maxLines = 2_000

/** Leaves out unchanged lines that are not next to a change. */
function hunksOf(lines: readonly DiffLine[]): Hunk[] {
  const isNear = new Uint8Array(lines.length)
  lines.forEach(({ kind }, i) => {
    if (kind !== 'same') isNear.fill(1, Math.max(0, i - context), i + context + 1)
  })
  const hunks: { skipped: number; lines: DiffLine[] }[] = []
  let hunk = { skipped: 0, lines: [] as DiffLine[] }
  lines.forEach((line, i) => {
    // A single line takes no more space than the remark that it was left out.
    const isSingle = (isNear[i - 1] ?? 1) === 1 && (isNear[i + 1] ?? 1) === 1
    if (isNear[i] === 1 || isSingle) {
      hunk.lines.push(line)
      return
    }
    if (hunk.lines.length > 0) {
      hunks.push(hunk)
      hunk = { skipped: 0, lines: [] }
    }
    hunk.skipped += 1
  })
  return [...hunks, hunk]
}

const signs = { same: ' ', added: '+', removed: '−' } as const

export function Diff({ before, after }: { readonly before: string; readonly after: string }) {
  const lines = useMemo(() => diffLines(before, after), [before, after])
  if (lines.every(({ kind }) => kind === 'same')) return <p class="muted">{t('noChanges')}</p>
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable with the keyboard
    <pre class="diff" tabIndex={0}>
      {hunksOf(lines.slice(0, maxLines)).map(({ skipped, lines: shown }, i) => (
        <div key={i}>
          {skipped > 0 && <div class="diff-skipped">⋯ {t('unchangedLines', { count: whole(skipped) })}</div>}
          {shown.map(({ kind, text }, j) => (
            <div key={j} class={`diff-line diff-${kind}`}>
              <span aria-hidden="true">{signs[kind]} </span>
              {kind !== 'same' && <span class="visually-hidden">{t(kind)}: </span>}
              {text || ' '}
            </div>
          ))}
        </div>
      ))}
      {lines.length > maxLines && (
        <div class="diff-skipped">⋯ {t('moreLines', { count: whole(lines.length - maxLines) })}</div>
      )}
    </pre>
  )
}
