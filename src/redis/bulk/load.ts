import type { CommandWriter } from './commands/command-writer.js'
import { Pace } from './pace.js'
import { Breaks } from './records/breaks.js'
import type { RecordSource } from './records/record-source.js'
import type { BulkSink } from './sinks/sink.js'
import { unsuitable } from './sinks/unsuitable.js'
import { stopped, type Tally } from './tally.js'

export interface LoadOptions {
  /** Records a second at most. */
  readonly ratePerSecond?: number | undefined
  /** Others have to do with the server too. */
  readonly isGentle: boolean
  /** Takes no more records once it aborts; what is under way is still waited for. */
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: (() => void) | undefined
}

/** How a load ended: `line` is where to go on, if it did not come to the end. */
export interface LoadEnd {
  readonly error: Error
  readonly line: number
}

const progressEveryMs = 100

/** Takes records from the source to the sink until there are no more; what stopped it before that, if anything did. */
export async function load(
  source: RecordSource,
  out: CommandWriter,
  sink: BulkSink,
  tally: Tally,
  { ratePerSecond, isGentle, signal, onProgress }: LoadOptions,
): Promise<LoadEnd | undefined> {
  const pace = ratePerSecond === undefined ? undefined : new Pace(ratePerSecond, () => performance.now())
  const breaks = isGentle ? new Breaks(() => performance.now()) : undefined
  const interruption = new Interruption(signal)
  let shownAt = performance.now()
  try {
    for (;;) {
      interruption.check()
      const encoded = source.next(out)
      if (encoded === undefined) {
        await sink.flush()
        if (!(await interruption.or(source.more(), sink))) break
        continue
      }
      if (encoded === 'nothing') continue
      if (encoded !== 'rest') tally.records++
      const isCommand = encoded === 'written' || encoded === 'rest'
      const mistake = typeof encoded === 'object' ? encoded.mistake : isCommand ? unsuitable(out) : undefined
      if (mistake !== undefined) {
        if (isCommand) out.drop()
        tally.fail(source.line, mistake)
        continue
      }
      if (isCommand) sink.put(source.line)
      const waitMs = pace?.take() ?? 0
      if (!sink.isFull && waitMs === 0) continue
      const room = sink.flush()
      if (room !== undefined) await room
      const rest = breaks?.due()
      if (rest !== undefined) await interruption.or(rest, sink)
      if (waitMs > 0) await interruption.or(new Promise((resolve) => setTimeout(resolve, waitMs)), sink)
      const now = performance.now()
      if (onProgress === undefined || now - shownAt < progressEveryMs) continue
      shownAt = now
      onProgress()
    }
    await sink.finish()
    return undefined
  } catch (error) {
    return await ended(error as Error, source, sink)
  } finally {
    interruption.end()
    onProgress?.()
  }
}

/** Unless it is the sink that has failed, the replies under way are still awaited; then everything up to here is known. */
async function ended(error: Error, source: RecordSource, sink: BulkSink): Promise<LoadEnd> {
  let reason = error instanceof Interrupted ? stopped('it was interrupted') : error
  try {
    await sink.finish()
  } catch (failure) {
    reason = failure as Error
  }
  return { error: reason, line: sink.unansweredLine ?? source.line + 1 }
}

class Interrupted extends Error {}

/** What may end the waiting for something else: the caller, or the sink. */
class Interruption {
  readonly #signal: AbortSignal | undefined
  #reject: ((error: Error) => void) | undefined
  readonly #onAbort = (): void => this.#reject?.(new Interrupted())

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal
    signal?.addEventListener('abort', this.#onAbort)
  }

  check(): void {
    if (this.#signal?.aborted) throw new Interrupted()
  }

  or<T>(promise: Promise<T>, sink: BulkSink): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#reject = reject
      sink.onStop = reject
      promise.then(resolve, reject)
    })
  }

  end(): void {
    this.#signal?.removeEventListener('abort', this.#onAbort)
  }
}
