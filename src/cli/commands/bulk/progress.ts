import type { BulkProgress } from '../../../redis/bulk/tally.js'
import { formatDuration } from '../../output/format-duration.js'

export interface ProgressBar {
  /** So many bytes of the input have been read, of how many if that is known. */
  read(bytes: number, size: number | undefined): void
  show(progress: BulkProgress): void
  clear(): void
}

const showEveryMs = 200
const barWidth = 24

type Output = Pick<NodeJS.WriteStream, 'write' | 'isTTY'>

/** On a terminal, a line that tells how far it is, how fast, and how long it will take; elsewhere nothing. */
export function progressBar(stream: Output, now = () => performance.now()): ProgressBar {
  const startedAt = now()
  let shownAt = startedAt
  let part: number | undefined
  return {
    read(bytes, size) {
      part = size === undefined || size === 0 ? undefined : bytes / size
    },
    show(progress) {
      if (!stream.isTTY || now() - shownAt < showEveryMs) return
      shownAt = now()
      stream.write(`\r\u001b[K${lineOf(progress, part, shownAt - startedAt)}`)
    },
    clear() {
      if (stream.isTTY) stream.write('\r\u001b[K')
    },
  }
}

/** `part` of the input has been read, after so long. */
export function lineOf({ records, failed }: BulkProgress, part: number | undefined, elapsedMs: number): string {
  const rate = `${Math.round((records * 1_000) / Math.max(1, elapsedMs)).toLocaleString('en')}/s`
  const failures = failed === 0 ? '' : `  ${failed.toLocaleString('en')} failed`
  const counts = `${records.toLocaleString('en')} records  ${rate}${failures}`
  if (part === undefined || part === 0) return counts
  const filled = Math.round(part * barWidth)
  const leftMs = Math.round((elapsedMs * (1 - part)) / part / 1_000) * 1_000
  const bar = `${'█'.repeat(filled)}${'░'.repeat(barWidth - filled)} ${Math.floor(100 * part)}%`
  return `${bar}  ${counts}${leftMs === 0 ? '' : `  ${formatDuration(leftMs)} left`}`
}
