/** The properties of a call that a method can use. */
export interface UnaryCall {
  /** A metadata value that is text; undefined if the call does not have it. */
  header(name: string): string | undefined
  /** Aborts when the client cancels the call, its deadline passes or its connection ends. */
  signal(): AbortSignal
}

/** One request, one response. Throws, or rejects with, a `GrpcError` for another status than OK. */
interface UnaryMethod {
  readonly kind: 'UNARY'
  handle(message: Buffer, call: UnaryCall): Buffer | Promise<Buffer>
}

/** A call with several requests or responses. */
export interface StreamCall extends UnaryCall {
  send(message: Buffer): void
  /** Ends the call: with OK, or with the status of an error. */
  end(error?: Error): void
}

/** Receives the requests of a stream. */
export interface StreamReceiver {
  message(message: Buffer): void
  /** The client has sent its last request. */
  end(): void
  /** The call has ended, for whatever reason. */
  closed(): void
}

interface StreamMethod {
  readonly kind: 'STREAM'
  open(call: StreamCall): StreamReceiver
}

export type Method = UnaryMethod | StreamMethod

/** Methods by path, such as `/grpc.health.v1.Health/Check`. */
export type Methods = ReadonlyMap<string, Method>
