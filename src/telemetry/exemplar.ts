/** A sampled trace that produced a value. Exemplars lead from a metric to an example of what it counts. */
export interface Exemplar {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** 16 hexadecimal digits. */
  readonly spanId: string
  /** The observed value, in the unit of the metric. */
  readonly value: number
  /** Epoch milliseconds. */
  readonly at: number
}
