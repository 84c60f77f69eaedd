export interface UploadLimits {
  /** Bytes per second that a client must send of a request body; 0 disables the check. */
  readonly minUploadRate: number
  /** The rate is averaged over periods of this length. */
  readonly uploadGraceMs: number
}

/** Measures how fast a client sends a request body. Periods in which the upstream did not read do not count. */
export class UploadRate {
  #since: number
  #bytes: number

  constructor(now: number, bytesRead: number) {
    this.#since = now
    this.#bytes = bytesRead
  }

  /** Must be called periodically with the number of bytes read so far. */
  isTooSlow(now: number, bytesRead: number, isUpstreamSlow: boolean, limits: UploadLimits): boolean {
    const elapsedMs = now - this.#since
    if (!isUpstreamSlow && elapsedMs < limits.uploadGraceMs) return false
    const received = bytesRead - this.#bytes
    this.#since = now
    this.#bytes = bytesRead
    return !isUpstreamSlow && received * 1_000 < limits.minUploadRate * elapsedMs
  }
}
