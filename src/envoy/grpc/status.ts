/** The status codes of gRPC that this server sends. */
export const statusCodes = {
  OK: 0,
  CANCELLED: 1,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  RESOURCE_EXHAUSTED: 8,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  UNAUTHENTICATED: 16,
} as const

export type StatusCode = keyof typeof statusCodes

/** Ends a call with a status other than OK. */
export class GrpcError extends Error {
  readonly code: StatusCode

  constructor(code: StatusCode, message: string) {
    super(message)
    this.code = code
  }
}

const maxMessageLength = 1_024

/** The value of `grpc-message`: percent-encoded and bounded, because messages may quote the request. */
export const encodeStatusMessage = (message: string): string =>
  message
    .slice(0, maxMessageLength)
    .replaceAll(/[^ -$&-~]/gu, (char) =>
      [...Buffer.from(char)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
    )
