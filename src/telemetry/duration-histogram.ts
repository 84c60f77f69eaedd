import type { SampledTrace } from '../core/tracing/trace-id.js'
import type { Exemplar } from './exemplar.js'

/** Upper bounds in seconds, from an in-memory decision to one that reached its timeout. */
export const durationBounds = [
  0.000_001, 0.000_002_5, 0.000_005, 0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005,
  0.01, 0.025, 0.05, 0.1, 0.25, 1,
] as const

const boundsMs = durationBounds.map((seconds) => seconds * 1_000)

/** A histogram of decision durations, with the latest exemplar of each bucket. */
export class DurationHistogram {
  readonly #counts: number[] = new Array(boundsMs.length + 1).fill(0)
  readonly #exemplars: (Exemplar | undefined)[] = []
  #sumMs = 0

  /** The counts by bucket, not cumulative and not copied. The last one is for durations above all bounds. */
  get counts(): readonly number[] {
    return this.#counts
  }

  /** Adds `weight` decisions with this duration. */
  observe(durationMs: number, weight: number): void {
    ;(this.#counts[placeOf(durationMs)] as number) += weight
    this.#sumMs += durationMs * weight
  }

  /** Keeps the exemplar of a duration that was observed. */
  exemplify(durationMs: number, { traceId, spanId }: SampledTrace, at: number): void {
    this.#exemplars[placeOf(durationMs)] = { traceId, spanId, value: durationMs / 1_000, at }
  }

  /** The latest exemplars, by bucket. */
  get exemplars(): readonly (Exemplar | undefined)[] {
    return this.#exemplars
  }

  /** Returns cumulative buckets, as in Prometheus. The last one contains all decisions. */
  read(): { readonly cumulative: readonly number[]; readonly count: number; readonly sumSeconds: number } {
    let count = 0
    const cumulative = this.#counts.map((own) => {
      count += own
      return count
    })
    return { cumulative, count, sumSeconds: this.#sumMs / 1_000 }
  }
}

function placeOf(durationMs: number): number {
  let place = 0
  while (place < boundsMs.length && durationMs > (boundsMs[place] as number)) place++
  return place
}
