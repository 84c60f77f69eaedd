/** What FluxGate asks of a Redis client. `connectionOf` makes one of a caller's client. */
export interface RedisConnection {
  /** Keys live on several nodes, so that one call may only name keys of one slot. */
  readonly isCluster: boolean
  /**
   * Sends one command, in upper case, in the same turn of the event loop: calls keep their order. `key` is one of the
   * keys it names: a cluster client finds the node by it.
   * Resolves with integers, strings, nulls and lists of these; a map is a list of its names and values in turn.
   * With `asBytes`, strings are buffers.
   * Rejects with the server's error, or the client's, as it is.
   */
  call(key: string, command: readonly (string | Buffer)[], asBytes?: boolean): Promise<unknown>
  /**
   * Hears what is published on a channel, over a connection of its own, and resolves, once it does, with how to end it.
   * Rejects if there is no connection now. One that is lost later comes back by itself; `onGap` is called each time it is
   * back, because what was published in between was missed.
   */
  subscribe(channel: string, onMessage: (message: string) => void, onGap?: () => void): Promise<() => Promise<void>>
  /**
   * Resolves once connected, or after `withinMs` all the same: a server that is not there may come back.
   * Rejects as soon as it is known that waiting will not help, such as with a wrong password.
   */
  ready?(withinMs: number): Promise<void>
  readonly isConnected?: boolean
  /** The error that a call would reject with at once, because there is no connection. */
  readonly unreachable?: unknown
  /** Closes what was opened here; a client of the caller's is left alone. */
  close(): Promise<void>
}
