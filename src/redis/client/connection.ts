/** The Redis operations that FluxGate needs. `connectionOf` adapts a caller's client to this interface. */
export interface RedisConnection {
  /** True for Redis Cluster, where all keys of one call must be in the same slot. */
  readonly isCluster: boolean
  /**
   * Sends one command in the same turn of the event loop, so that calls keep their order. The command name is in upper
   * case. `key` is one of the command's keys; a cluster client selects the node by it.
   * Resolves with integers, strings, nulls and lists of these. A map is a flat list of keys and values.
   * With `asBytes`, strings are buffers.
   * Rejects with the unchanged error of the server or the client.
   */
  call(key: string, command: readonly (string | Buffer)[], asBytes?: boolean): Promise<unknown>
  /**
   * Subscribes to a channel on a separate connection and resolves with a function that ends the subscription. Rejects if
   * the connection cannot be opened. A connection that is lost later is reopened; `onGap` is called each time, because
   * messages published in between were missed.
   */
  subscribe(channel: string, onMessage: (message: string) => void, onGap?: () => void): Promise<() => Promise<void>>
  /**
   * Resolves once connected, or after `withinMs` even if not connected, because the server may still become available.
   * Rejects early if waiting cannot help, such as with a wrong password.
   */
  ready?(withinMs: number): Promise<void>
  readonly isConnected?: boolean
  /** The error with which a call would fail immediately because there is no connection; otherwise `undefined`. */
  readonly unreachable?: unknown
  /** Closes the connections that FluxGate opened. The caller's client stays open. */
  close(): Promise<void>
}
