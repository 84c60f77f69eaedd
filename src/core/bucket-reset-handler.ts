/** Rules of one set whose buckets have started afresh. */
export interface BucketReset {
  readonly ruleSetId: string
  readonly ruleIds: readonly string[]
}

/** Told when all buckets of a rule start afresh: it was reset, is gone, or its bands mean something else now. */
export interface BucketResetHandler {
  /** Called once that is so in this process. What it throws is thrown on its own, outside of what caused the reset. */
  bucketsReset(reset: BucketReset): void
}
