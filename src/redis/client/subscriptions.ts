/** Opens a connection in subscriber mode. `onLost` is called when the connection is lost. */
export type Listen = (
  onMessage: (channel: string, message: string) => void,
  onLost: () => void,
) => Promise<ListeningLink>

/** A dedicated subscriber connection of a client library. It never reconnects; `Subscriptions` opens another one. */
export interface ListeningLink {
  subscribe(channel: string): Promise<unknown>
  unsubscribe(channel: string): Promise<unknown>
  /** Rejects if the connection is lost. */
  ping(): Promise<unknown>
  close(): void
}

interface Listener {
  readonly onMessage: (message: string) => void
  readonly onGap: (() => void) | undefined
}

interface Channel {
  readonly listeners: Set<Listener>
  /** Settles when the server confirms or rejects the subscription. */
  confirmed: Promise<unknown>
}

const slowestRetryMs = 2_000
const pingEveryMs = 5_000

/**
 * Shares one subscriber connection between channels. The first subscription opens it and the last one closes it. A lost
 * connection is replaced with quadratic backoff of up to 2 s; then `onGap` of every listener is called, because messages
 * may have been missed.
 */
export class Subscriptions {
  readonly #listen: Listen
  readonly #channels = new Map<string, Channel>()
  #link: Promise<ListeningLink> | undefined
  #pingTimer: NodeJS.Timeout | undefined
  #retryTimer: NodeJS.Timeout | undefined
  #failures = 0

  constructor(listen: Listen) {
    this.#listen = listen
  }

  /**
   * Resolves when the server has confirmed the subscription, with a function that ends it. Rejects if the server cannot be
   * reached; the listener is then removed.
   */
  async subscribe(
    channel: string,
    onMessage: (message: string) => void,
    onGap?: () => void,
  ): Promise<() => Promise<void>> {
    const listener: Listener = { onMessage, onGap }
    const known = this.#channels.get(channel)
    const { listeners, confirmed } = known ?? this.#addChannel(channel)
    listeners.add(listener)
    try {
      await confirmed
    } catch (error) {
      await this.#removeListener(channel, listener)
      throw error
    }
    return () => this.#removeListener(channel, listener)
  }

  async close(): Promise<void> {
    this.#channels.clear()
    await this.#closeLink()
  }

  #addChannel(name: string): Channel {
    const confirmed = this.#openLink().then((link) => link.subscribe(name))
    const channel = { listeners: new Set<Listener>(), confirmed }
    this.#channels.set(name, channel)
    return channel
  }

  async #removeListener(channel: string, listener: Listener): Promise<void> {
    const listeners = this.#channels.get(channel)?.listeners
    if (!listeners?.delete(listener) || listeners.size > 0) return
    this.#channels.delete(channel)
    if (this.#channels.size === 0) return this.#closeLink()
    const link = await this.#link?.catch(() => undefined)
    // Another listener may have subscribed to the channel in the meantime.
    if (!this.#channels.has(channel)) await link?.unsubscribe(channel).catch(() => {})
  }

  #openLink(): Promise<ListeningLink> {
    if (this.#link !== undefined) return this.#link
    clearTimeout(this.#retryTimer)
    const link = this.#listen(
      (channel, message) => {
        if (this.#link !== link) return
        for (const { onMessage } of this.#channels.get(channel)?.listeners ?? []) onMessage(message)
      },
      () => this.#lost(link),
    )
    this.#link = link
    link.then(
      (opened) => this.#startPings(link, opened),
      () => this.#lost(link),
    )
    return link
  }

  /** Pings the connection, because a subscriber that sends nothing would not notice a dead connection. */
  #startPings(link: Promise<ListeningLink>, opened: ListeningLink): void {
    if (this.#link !== link) {
      opened.close()
      return
    }
    clearInterval(this.#pingTimer)
    this.#pingTimer = setInterval(() => {
      const timer = setTimeout(() => this.#lost(link), pingEveryMs / 2)
      opened
        .ping()
        .catch(() => this.#lost(link))
        .finally(() => clearTimeout(timer))
    }, pingEveryMs)
  }

  #lost(link: Promise<ListeningLink>): void {
    if (this.#link !== link) return
    void this.#closeLink()
    if (this.#channels.size === 0) return
    const delayMs = Math.min(slowestRetryMs, 50 * (this.#failures++) ** 2)
    this.#retryTimer = setTimeout(() => void this.#resume(), delayMs)
  }

  async #resume(): Promise<void> {
    const link = this.#openLink()
    const channels = [...this.#channels]
    for (const [name, channel] of channels) channel.confirmed = link.then((opened) => opened.subscribe(name))
    try {
      await Promise.all(channels.map(([, { confirmed }]) => confirmed))
    } catch {
      this.#lost(link)
      return
    }
    this.#failures = 0
    for (const [, { listeners }] of channels) for (const { onGap } of [...listeners]) onGap?.()
  }

  async #closeLink(): Promise<void> {
    clearInterval(this.#pingTimer)
    clearTimeout(this.#retryTimer)
    const link = this.#link
    this.#link = undefined
    const opened = await link?.catch(() => undefined)
    opened?.close()
  }
}
