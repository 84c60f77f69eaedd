/** Options shared by `start`, `serve` and `gateway`. */
export interface StartOptions {
  readonly config?: string
  readonly rules?: string
  readonly port?: number
  readonly host?: string
  /** Port of Envoy's rate limit service. */
  readonly grpcPort?: number
  readonly json?: true
}
