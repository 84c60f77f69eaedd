import { t } from '../text/translate.js'

export interface DiffLine {
  readonly kind: 'same' | 'added' | 'removed'
  readonly text: string
}

/** The shortest list of removed and added lines, by the longest common subsequence. Documents have at most a few hundred lines. */
export function diffLines(before: string, after: string): DiffLine[] {
  const old = before.split('\n')
  const fresh = after.split('\n')
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
      lines.push({ kind: 'removed', text: old[i++] as string })
    else lines.push({ kind: 'added', text: fresh[j++] as string })
  }
  return lines
}

const signs = { same: ' ', added: '+', removed: '−' } as const

export function Diff({ before, after }: { readonly before: string; readonly after: string }) {
  const lines = diffLines(before, after)
  if (lines.every(({ kind }) => kind === 'same')) return <p class="muted">{t('noChanges')}</p>
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable with the keyboard
    <pre class="diff" tabIndex={0}>
      {lines.map(({ kind, text }, i) => (
        <div key={i} class={`diff-${kind}`}>
          <span aria-hidden="true">{signs[kind]} </span>
          {kind !== 'same' && <span class="visually-hidden">{t(kind)}: </span>}
          {text || ' '}
        </div>
      ))}
    </pre>
  )
}
