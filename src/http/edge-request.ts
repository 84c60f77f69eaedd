import { withoutOrigin } from '../core/matching/paths/normalise-path.js'

/** By lower-case name. */
export type EdgeHeaders = Readonly<Record<string, string | readonly string[] | undefined>>

/** As much of a request as limits are about, whatever the framework. Read as soon as it is there: some of it goes with the client. */
export interface EdgeRequest {
  readonly method: string
  /** Path and query, as they were sent. */
  readonly url: string
  readonly headers: EdgeHeaders
  /** The other end of the socket. */
  readonly remoteAddress: string | undefined
  /** Aborts when the client is gone; called only for a request that has to be held. */
  signal(): AbortSignal
  /**
   * True if no response can be sent any more: the application has sent or ended one, or the client has left. Omitted where
   * the caller of the guard checks this itself.
   */
  isGone?(): boolean
}

/** What follows the host; a client of a proxy may send `http://host` before it. */
export const pathOf = (url: string): string => withoutOrigin(url) || '/'
