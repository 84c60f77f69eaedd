/** One connection that listens, for as long as somebody wants to hear something. */

export type Listen = (
  onMessage: (channel: string, message: string) => void,
  onLost: () => void,
) => Promise<ListeningLink>

/** A connection of its own, as the driver of a client library opens it. It is not mended: once lost, it stays so. */
export interface ListeningLink {
  subscribe(channel: string): Promise<unknown>
  unsubscribe(channel: string): Promise<unknown>
  /** Rejects if the connection is known to be gone. */
  ping(): Promise<unknown>
  close(): void
}

interface Listener {
  readonly onMessage: (message: string) => void
  readonly onGap: (() => void) | undefined
}

interface Channel {
  readonly listeners: Set<Listener>
  /** Settles with the server's word for it. */
  asked: Promise<unknown>
}

const slowestRetryMs = 2_000
const pingEveryMs = 5_000

/**
 * Channels come and go on one link, which is opened with the first and closed with the last of them. A lost link is
 * replaced, at first at once and then less and less often; everybody is then told that messages may have been missed.
 */
export class Subscriptions {
  readonly #listen: Listen
  readonly #channels = new Map<string, Channel>()
  #link: Promise<ListeningLink> | undefined
  #pinging: NodeJS.Timeout | undefined
  #retrying: NodeJS.Timeout | undefined
  #failures = 0

  constructor(listen: Listen) {
    this.#listen = listen
  }

  /** Resolves once the server sends what is published from then on. Rejects if it cannot be asked now, and keeps nothing. */
  async subscribe(
    channel: string,
    onMessage: (message: string) => void,
    onGap?: () => void,
  ): Promise<() => Promise<void>> {
    const listener: Listener = { onMessage, onGap }
    const known = this.#channels.get(channel)
    const { listeners, asked } = known ?? this.#ask(channel)
    listeners.add(listener)
    try {
      await asked
    } catch (error) {
      await this.#leave(channel, listener)
      throw error
    }
    return () => this.#leave(channel, listener)
  }

  async close(): Promise<void> {
    this.#channels.clear()
    await this.#letGo()
  }

  #ask(name: string): Channel {
    const asked = this.#opened().then((link) => link.subscribe(name))
    const channel = { listeners: new Set<Listener>(), asked }
    this.#channels.set(name, channel)
    return channel
  }

  async #leave(channel: string, listener: Listener): Promise<void> {
    const listeners = this.#channels.get(channel)?.listeners
    if (!listeners?.delete(listener) || listeners.size > 0) return
    this.#channels.delete(channel)
    if (this.#channels.size === 0) return this.#letGo()
    const link = await this.#link?.catch(() => undefined)
    // Somebody may have come for the same channel meanwhile.
    if (!this.#channels.has(channel)) await link?.unsubscribe(channel).catch(() => {})
  }

  #opened(): Promise<ListeningLink> {
    if (this.#link !== undefined) return this.#link
    clearTimeout(this.#retrying)
    const link = this.#listen(
      (channel, message) => {
        if (this.#link !== link) return
        for (const { onMessage } of this.#channels.get(channel)?.listeners ?? []) onMessage(message)
      },
      () => this.#lost(link),
    )
    this.#link = link
    link.then(
      (opened) => this.#watch(link, opened),
      () => this.#lost(link),
    )
    return link
  }

  /** A connection may be dead without a sign of it; whoever only listens would never know. */
  #watch(link: Promise<ListeningLink>, opened: ListeningLink): void {
    if (this.#link !== link) {
      opened.close()
      return
    }
    clearInterval(this.#pinging)
    this.#pinging = setInterval(() => {
      const tooLate = setTimeout(() => this.#lost(link), pingEveryMs / 2)
      opened
        .ping()
        .catch(() => this.#lost(link))
        .finally(() => clearTimeout(tooLate))
    }, pingEveryMs)
  }

  #lost(link: Promise<ListeningLink>): void {
    if (this.#link !== link) return
    void this.#letGo()
    if (this.#channels.size === 0) return
    const delayMs = Math.min(slowestRetryMs, 50 * (this.#failures++) ** 2)
    this.#retrying = setTimeout(() => void this.#resume(), delayMs)
  }

  async #resume(): Promise<void> {
    const link = this.#opened()
    const channels = [...this.#channels]
    for (const [name, channel] of channels) channel.asked = link.then((opened) => opened.subscribe(name))
    try {
      await Promise.all(channels.map(([, { asked }]) => asked))
    } catch {
      this.#lost(link)
      return
    }
    this.#failures = 0
    for (const [, { listeners }] of channels) for (const { onGap } of [...listeners]) onGap?.()
  }

  async #letGo(): Promise<void> {
    clearInterval(this.#pinging)
    clearTimeout(this.#retrying)
    const link = this.#link
    this.#link = undefined
    const opened = await link?.catch(() => undefined)
    opened?.close()
  }
}
