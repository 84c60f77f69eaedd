/** By lower-case name. */
export type EdgeHeaders = Readonly<Record<string, string | readonly string[] | undefined>>

/** The parts of a request that limits depend on, independent of the framework. */
export interface EdgeRequest {
  readonly method: string
  /** Path and query as sent, with or without an origin before them. */
  readonly url: string
  readonly headers: EdgeHeaders
  /** The remote address of the socket; unknown after the client has disconnected. */
  readonly remoteAddress: string | undefined
  /** Aborts when the client disconnects. Called only for delayed requests. */
  signal(): AbortSignal
  /**
   * True if no response can be sent any more: the application has sent one, or the client has disconnected. Omitted where the
   * caller of the guard checks this itself.
   */
  isAborted?(): boolean
  /**
   * Calls the listener when the response has finished or failed, or the client has disconnected; immediately if it already has.
   * Omitted where the adapter calls `release` of the outcome itself. Called only for requests that hold a slot.
   */
  onEnd?(listener: () => void): void
}
