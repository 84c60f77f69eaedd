import type { RedisConnection } from '../../redis/client/connection.js'

const slowestRetryMs = 5_000
/** Many processes hear of a change at the same moment; they need not all read at the same moment. */
const spreadMs = 20

/**
 * Hears on a channel that rules have changed. Whatever a message says (`*`, nothing, the id of a rule set or JSON), all
 * rules are read again and compared, so that none can be wrong or come too often.
 */
export class RuleAnnouncements {
  readonly #connection: RedisConnection
  readonly #channel: string
  readonly #stops = new Set<() => void>()
  #isListening = false

  constructor(connection: RedisConnection, channel: string) {
    this.#connection = connection
    this.#channel = channel
  }

  /** Whether anything could have been heard yet. */
  get isListening(): boolean {
    return this.#isListening
  }

  watch(onChange: () => void, onError: (error: unknown) => void): () => void {
    let isStopped = false
    let failures = 0
    let leave: (() => Promise<void>) | undefined
    let retry: NodeJS.Timeout | undefined
    let soon: NodeJS.Timeout | undefined

    /** Several messages within a moment are one reason to read. */
    const heard = (): void => {
      soon ??= setTimeout(() => {
        soon = undefined
        onChange()
      }, Math.random() * spreadMs).unref()
    }
    const begin = async (): Promise<void> => {
      try {
        leave = await this.#connection.subscribe(this.#channel, heard, onChange)
        this.#isListening = true
      } catch (error) {
        if (isStopped) return
        if (failures === 0) onError(error)
        retry = setTimeout(begin, Math.min(slowestRetryMs, 50 * 2 ** failures++) * (0.5 + Math.random())).unref()
        return
      }
      if (isStopped) await leave().catch(() => {})
      // Whatever was changed before somebody listened was not heard.
      else onChange()
    }
    const stop = (): void => {
      if (isStopped) return
      isStopped = true
      clearTimeout(retry)
      clearTimeout(soon)
      this.#stops.delete(stop)
      void leave?.().catch(() => {})
    }
    this.#stops.add(stop)
    void begin()
    return stop
  }

  close(): void {
    for (const stop of [...this.#stops]) stop()
  }
}
