/** The rules of one rule set whose buckets were reset. */
export interface BucketReset {
  /** The id of the rule set. */
  readonly ruleSetId: string
  /** The ids of the rules whose buckets were reset. */
  readonly ruleIds: readonly string[]
}

/** Notified when all buckets of a rule are reset: the rule was reset or removed, or its bands changed. */
export interface BucketResetHandler {
  /** Called after the reset has taken effect in this process. It must not throw: an error would be an uncaught exception. */
  bucketsReset(reset: BucketReset): void
}
