import type { RedisConnection } from '../client/connection.js'

/** A caller in this process that waits for a notification. A notification that precedes `wait` is kept. */
export class Waiter {
  readonly channel: string
  readonly id: string
  /** Whether it is queued in Redis and woken by its id. */
  readonly fair: boolean
  #isNotified = false
  #wake = (): void => {}

  constructor(channel: string, id: string, fair: boolean) {
    this.channel = channel
    this.id = id
    this.fair = fair
  }

  get isNotified(): boolean {
    return this.#isNotified
  }

  notify(): void {
    this.#isNotified = true
    this.#wake()
  }

  /** Waits for a notification, for `ms`, or until the signal aborts. Resolves with true, and clears the notification, if there was one. */
  async wait(ms: number, signal: AbortSignal | undefined): Promise<boolean> {
    if (!this.#isNotified && !signal?.aborted) {
      let timer: NodeJS.Timeout | undefined
      await new Promise<void>((resolve) => {
        this.#wake = resolve
        timer = setTimeout(resolve, ms)
        signal?.addEventListener('abort', this.#wake)
      })
      clearTimeout(timer)
      signal?.removeEventListener('abort', this.#wake)
    }
    const wasNotified = this.#isNotified
    this.#isNotified = false
    return wasNotified
  }
}

interface Channel {
  /** In the order of their requests. */
  readonly waiters: Waiter[]
  /** Ends the subscription. `undefined` until the subscription is confirmed. */
  stop: (() => Promise<void>) | undefined
  timer: NodeJS.Timeout | undefined
}

/** How long a subscription outlives its last waiting caller, because callers often return. */
const lingerMs = 10_000
/** The polling interval while there is no subscription. */
const pollMs = 100

/**
 * Wakes waiting callers when a message announces a release. Only one caller per process is woken for each message, to avoid
 * a thundering herd. Queued (fair) callers are woken by their id.
 */
export class Waiters {
  readonly #connection: Pick<RedisConnection, 'subscribe'>
  readonly #isExclusive: boolean
  readonly #channels = new Map<string, Channel>()

  /** `isExclusive` is true for locks, where a release serves only one caller. */
  constructor(connection: Pick<RedisConnection, 'subscribe'>, isExclusive: boolean) {
    this.#connection = connection
    this.#isExclusive = isExclusive
  }

  /**
   * Adds a waiting caller. It is woken once the subscription is active, because a release before that was not announced to
   * it. If another caller already waits there, that caller was or will be woken instead.
   */
  add(name: string, id: string, fair: boolean): Waiter {
    const waiter = new Waiter(name, id, fair)
    const channel = this.#channels.get(name) ?? this.#open(name)
    const isServed = this.#isExclusive && !fair && channel.waiters.some((other) => !other.fair)
    channel.waiters.push(waiter)
    if (channel.stop !== undefined && !isServed) waiter.notify()
    return waiter
  }

  /** Resolves with true if the caller was woken. A caller that was woken and does not use the release must wake the next one. */
  wait(waiter: Waiter, ms: number, signal: AbortSignal | undefined): Promise<boolean> {
    const isSubscribed = this.#channels.get(waiter.channel)?.stop !== undefined
    return waiter.wait(isSubscribed ? ms : Math.min(ms, pollMs), signal)
  }

  notifyNext({ channel }: Waiter): void {
    this.#notify(channel, '')
  }

  /** Wakes all callers. */
  notifyAll(): void {
    for (const { waiters } of this.#channels.values()) for (const waiter of waiters) waiter.notify()
  }

  remove(waiter: Waiter): void {
    const channel = this.#channels.get(waiter.channel)
    if (channel === undefined) return
    channel.waiters.splice(channel.waiters.indexOf(waiter), 1)
    if (waiter.isNotified) this.notifyNext(waiter)
    if (channel.waiters.length === 0) this.#scheduleCleanup(waiter.channel, channel)
  }

  #open(name: string): Channel {
    const channel: Channel = { waiters: [], stop: undefined, timer: undefined }
    this.#channels.set(name, channel)
    this.#listen(name, channel)
    return channel
  }

  #listen(name: string, channel: Channel): void {
    const notifyAll = (): void => {
      for (const waiter of channel.waiters) waiter.notify()
    }
    this.#connection
      .subscribe(name, (id) => this.#notify(name, id), notifyAll)
      .then(
        (stop) => {
          channel.stop = stop
          notifyAll()
        },
        () => {},
      )
      .finally(() => this.#scheduleCleanup(name, channel))
  }

  /** Later ends an unused subscription, or retries one that failed. */
  #scheduleCleanup(name: string, channel: Channel): void {
    clearTimeout(channel.timer)
    channel.timer = setTimeout(() => {
      if (channel.waiters.length > 0) {
        if (channel.stop === undefined) this.#listen(name, channel)
        return
      }
      this.#channels.delete(name)
      channel.stop?.().catch(() => {})
    }, lingerMs)
    channel.timer.unref()
  }

  /** Wakes the caller with the id, or without an id the first that is not queued. An unknown id is in another process. */
  #notify(name: string, id: string): void {
    const waiters = this.#channels.get(name)?.waiters ?? []
    waiters.find((waiter) => !waiter.isNotified && (id === '' ? !waiter.fair : waiter.id === id))?.notify()
  }
}
