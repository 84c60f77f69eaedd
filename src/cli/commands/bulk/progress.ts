import type { BulkProgress } from '../../../redis/bulk/tally.js'
import { formatDuration } from '../../output/format-duration.js'

export interface ProgressBar {
  /** Updates the number of input bytes read. `size` is the input size, undefined if unknown. */
  read(bytes: number, size: number | undefined): void
  show(progress: BulkProgress): void
  clear(): void
}

const refreshMs = 200
const barWidth = 24

type Output = Pick<NodeJS.WriteStream, 'write' | 'isTTY'>

/** A one-line progress display with percentage, rate and remaining time. Prints only to a terminal. */
export function progressBar(stream: Output, now = () => performance.now()): ProgressBar {
  const startedAt = now()
  let shownAt = startedAt
  let part: number | undefined
  return {
    read(bytes, size) {
      part = size === undefined || size === 0 ? undefined : bytes / size
    },
    show(progress) {
      if (!stream.isTTY || now() - shownAt < refreshMs) return
      shownAt = now()
      stream.write(`\r\u001b[K${lineOf(progress, part, shownAt - startedAt)}`)
    },
    clear() {
      if (stream.isTTY) stream.write('\r\u001b[K')
    },
  }
}

/** Formats the progress line. `part` is the share of the input that has been read, from 0 to 1. */
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
