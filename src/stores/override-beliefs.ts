import type { BucketGroup, Demand } from '../core/bucket-store.js'
import { expires, hasBalance } from './override-value.js'
import type { Work } from './redis-work.js'

/** A claim on behalf of an identity whose override is believed to be what it last was. */
export interface BelievedDemand extends Demand {
  /** The override; if it is another one by now, the call does nothing and says so. */
  readonly expected?: Buffer
}

interface Belief {
  readonly override: Buffer
  readonly group: BucketGroup
}

const mostBeliefs = 10_000

/**
 * The overrides that were found lately. An identity asks for its own buckets straight away then, and the script only
 * compares, which takes a fraction of the time. Nobody relies on it: what has changed is found out in the same call.
 */
export class OverrideBeliefs {
  readonly #byGroup = new WeakMap<BucketGroup, Map<string, Belief>>()

  /** The work as it is believed to be; the same one if nothing is believed of its identities. */
  applyTo(work: Work): Work {
    if (work.what !== 'CHARGE' && work.what !== 'PEEK') return work
    let claims: BelievedDemand[] | undefined
    for (let i = 0; i < work.claims.length; i++) {
      const { group, key, permits, patience, policy, shadow } = work.claims[i] as Demand
      const belief = group.hasOverrides ? this.#byGroup.get(group)?.get(key) : undefined
      if (belief === undefined) continue
      claims ??= [...work.claims]
      claims[i] = { group: belief.group, key, permits, patience, policy, shadow, expected: belief.override }
    }
    return claims === undefined ? work : { what: work.what, claims }
  }

  /** A denial is no bucket, and what expires has to be looked at anyway. */
  learn(rule: BucketGroup, key: string, group: BucketGroup, override: Buffer): void {
    if (group.listed === 'DENY' || ((override[0] as number) & (expires | hasBalance)) !== 0) return
    let beliefs = this.#byGroup.get(rule)
    if (beliefs === undefined) {
      beliefs = new Map()
      this.#byGroup.set(rule, beliefs)
    }
    beliefs.delete(key)
    if (beliefs.size >= mostBeliefs) beliefs.delete(beliefs.keys().next().value as string)
    beliefs.set(key, { override, group })
  }

  forget(works: readonly Work[]): void {
    for (const { claims } of works)
      for (const { group, key } of claims) if (group.insteadOf) this.#byGroup.get(group.insteadOf)?.delete(key)
  }
}
