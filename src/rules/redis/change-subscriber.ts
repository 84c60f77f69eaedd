import type { RedisConnection } from '../../redis/client/connection.js'

const slowestRetryMs = 5_000
/** Maximum random delay of a reload, so that processes do not all read at the same time. */
const spreadMs = 20

/**
 * Subscribes to change announcements. Any message (`*`, empty, a rule set id or JSON) reloads and compares all rules, so that
 * wrong or repeated messages do no harm.
 */
export class ChangeSubscriber {
  readonly #connection: RedisConnection
  readonly #channel: string
  readonly #stops = new Set<() => void>()
  #isListening = false

  constructor(connection: RedisConnection, channel: string) {
    this.#connection = connection
    this.#channel = channel
  }

  /** True once a subscription has been active. */
  get isListening(): boolean {
    return this.#isListening
  }

  watch(onChange: () => void, onError: (error: unknown) => void): () => void {
    let isStopped = false
    let failures = 0
    let unsubscribe: (() => Promise<void>) | undefined
    let retry: NodeJS.Timeout | undefined
    let pending: NodeJS.Timeout | undefined

    /** Several messages in a short time cause one reload. */
    const onMessage = (): void => {
      pending ??= setTimeout(() => {
        pending = undefined
        onChange()
      }, Math.random() * spreadMs).unref()
    }
    const subscribe = async (): Promise<void> => {
      try {
        unsubscribe = await this.#connection.subscribe(this.#channel, onMessage, onChange)
        this.#isListening = true
      } catch (error) {
        if (isStopped) return
        if (failures === 0) onError(error)
        retry = setTimeout(subscribe, Math.min(slowestRetryMs, 50 * 2 ** failures++) * (0.5 + Math.random())).unref()
        return
      }
      if (isStopped) await unsubscribe().catch(() => {})
      // Changes before the subscription was active were not received.
      else onChange()
    }
    const stop = (): void => {
      if (isStopped) return
      isStopped = true
      clearTimeout(retry)
      clearTimeout(pending)
      this.#stops.delete(stop)
      void unsubscribe?.().catch(() => {})
    }
    this.#stops.add(stop)
    void subscribe()
    return stop
  }

  close(): void {
    for (const stop of [...this.#stops]) stop()
  }
}
