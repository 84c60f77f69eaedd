/** The error of a `clientError` event of `node:http`. */
export interface ParseError extends Error {
  readonly code?: string
  /** The bytes that were being parsed. */
  readonly rawPacket?: Buffer
}
