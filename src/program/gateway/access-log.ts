import { createWriteStream } from 'node:fs'
import type { Writable } from 'node:stream'
import type { AccessEntry, AccessLog } from '../../gateway/access-log.js'

export interface OpenAccessLog {
  readonly log: AccessLog
  /** Flushes and closes the log. */
  close(): Promise<void>
}

/** Writes JSON lines to standard output, standard error or a file. Lines of one event-loop turn are written together. */
export function openAccessLog(place: string, onError: (error: Error) => void): OpenAccessLog {
  const isStandard = place === 'stdout' || place === 'stderr'
  const stream: Writable = isStandard ? process[place] : createWriteStream(place, { flags: 'a' })
  if (!isStandard) stream.on('error', onError)
  let lines = ''
  const flush = (): void => {
    if (lines === '') return
    stream.write(lines)
    lines = ''
  }
  return {
    log(entry: AccessEntry) {
      if (lines === '') setImmediate(flush)
      lines += `${JSON.stringify(entry)}\n`
    },
    close() {
      flush()
      if (isStandard) return Promise.resolve()
      return new Promise((resolve) => stream.end(resolve))
    },
  }
}
