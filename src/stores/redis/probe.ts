import { type BucketGroup, type Charge, chargeOf } from '../../core/bucket-store.js'
import { ticksPerMs } from '../../core/clock.js'
import type { RedisConnection } from '../../redis/client/connection.js'
import { slotTag } from '../../redis/client/slot-tags.js'

/**
 * The bucket is full again after a millisecond, and its key expires then. Rule sets have no empty id, so no rule shares the
 * bucket.
 */
const group: BucketGroup = {
  ruleSetId: '',
  ruleId: 'probe',
  generation: '',
  permits: 1,
  bands: [
    {
      label: 'probe',
      algorithm: 'TOKEN_BUCKET',
      refill: 'STEADY',
      capacity: 1,
      refillTokens: 1,
      windowTicks: ticksPerMs,
    },
  ],
}

/** One permit of the probe's bucket: a decision that writes, so it also fails on a read-only replica and without memory. */
export const probeCharge = (key: string): Charge =>
  chargeOf({ group, maxWaitTicks: 0, policy: 'REJECT', shadow: false }, key, 1)

/** One key on each primary, so that a probe finds every node that does not answer. */
export async function probeKeys(connection: RedisConnection): Promise<readonly string[]> {
  if (!connection.isCluster) return ['probe']
  const ranges = (await connection.call('probe', ['CLUSTER', 'SLOTS'])) as readonly SlotRange[]
  const slots = new Map(ranges.map(([firstSlot, , [host, port]]) => [`${host}:${port}`, Number(firstSlot)]))
  return [...slots.values()].map(slotTag)
}

/** An entry of `CLUSTER SLOTS`; the replicas follow the primary. */
type SlotRange = readonly [firstSlot: number, lastSlot: number, primary: readonly [host: string, port: number]]
