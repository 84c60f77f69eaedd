import type { CommandWriter } from './commands/writer.js'
import { RecordRate, RegularPauses } from './pacing.js'
import type { RecordSource } from './records/record-source.js'
import type { BulkSink } from './sinks/sink.js'
import { stopped, type Tally } from './tally.js'

export interface LoadOptions {
  /** The maximum number of records per second. */
  readonly ratePerSecond?: number | undefined
  /** Whether to pause regularly, because the server has other load. */
  readonly isGentle: boolean
  /** Stops reading records when aborted. Replies in flight are still awaited. */
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: (() => void) | undefined
}

/** Why a load stopped early. `line` is where to resume. */
export interface LoadEnd {
  readonly error: Error
  readonly line: number
}

const progressIntervalMs = 100

/** Moves records from the source to the sink. Returns `undefined` at the end of the input, or why the load stopped early. */
export async function load(
  source: RecordSource,
  out: CommandWriter,
  sink: BulkSink,
  tally: Tally,
  { ratePerSecond, isGentle, signal, onProgress }: LoadOptions,
): Promise<LoadEnd | undefined> {
  const rate = ratePerSecond === undefined ? undefined : new RecordRate(ratePerSecond, () => performance.now())
  const pauses = isGentle ? new RegularPauses(() => performance.now()) : undefined
  const interruption = new Interruption(signal)
  let progressAt = performance.now()
  try {
    for (;;) {
      interruption.check()
      const encoded = source.next(out)
      if (encoded === undefined) {
        await sink.flush()
        if (!(await interruption.race(source.more(), sink))) break
        continue
      }
      if (encoded === 'nothing') continue
      if (encoded !== 'rest') tally.records++
      const isCommand = encoded === 'written' || encoded === 'rest'
      const problem = typeof encoded === 'object' ? encoded.issue : isCommand ? unsupportedCommand(out) : undefined
      if (problem !== undefined) {
        if (isCommand) out.drop()
        tally.fail(source.line, problem)
        continue
      }
      if (isCommand) sink.put(source.line)
      const waitMs = rate?.take() ?? 0
      if (!sink.isFull && waitMs === 0) continue
      const room = sink.flush()
      if (room !== undefined) await room
      const pause = pauses?.due()
      if (pause !== undefined) await interruption.race(pause, sink)
      if (waitMs > 0) await interruption.race(new Promise((resolve) => setTimeout(resolve, waitMs)), sink)
      const now = performance.now()
      if (onProgress === undefined || now - progressAt < progressIntervalMs) continue
      progressAt = now
      onProgress()
    }
    await sink.finish()
    return undefined
  } catch (error) {
    return await stopLoad(error as Error, source, sink)
  } finally {
    interruption.end()
    onProgress?.()
  }
}

/** Awaits the replies in flight, unless the sink has failed, so that the outcome of all sent records is known. */
async function stopLoad(error: Error, source: RecordSource, sink: BulkSink): Promise<LoadEnd> {
  let reason = error instanceof Interrupted ? stopped('it was interrupted') : error
  try {
    await sink.finish()
  } catch (failure) {
    reason = failure as Error
  }
  return { error: reason, line: sink.unansweredLine ?? source.line + 1 }
}

class Interrupted extends Error {}

/** Aborts a pending wait when the caller's signal aborts or the sink fails. */
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

  race<T>(promise: Promise<T>, sink: BulkSink): Promise<T> {
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

/** Commands after which the server no longer sends exactly one reply per command. */
const names = ['SUBSCRIBE', 'PSUBSCRIBE', 'SSUBSCRIBE', 'MONITOR', 'QUIT', 'HELLO', 'SYNC', 'PSYNC', 'RESET']
const signatures = new Set(names.map((name) => name.charCodeAt(0) * 16 + name.length))
const clientSignature = 'C'.charCodeAt(0) * 16 + 'CLIENT'.length

/** Returns why the last command cannot be loaded, or `undefined` if it can. */
function unsupportedCommand(out: CommandWriter): string | undefined {
  // The first byte and the length of the name rule out almost all commands cheaply.
  const signature = (out.nameByte & 0xdf) * 16 + out.nameLength
  if (!signatures.has(signature) && signature !== clientSignature) return undefined
  const word = (index: number): string => out.argument(index)?.toString('latin1').toUpperCase() ?? ''
  const name = word(0)
  const isReply = name === 'CLIENT' && word(1) === 'REPLY'
  return names.includes(name) || isReply
    ? `${name} cannot be loaded because it changes how the server replies`
    : undefined
}
