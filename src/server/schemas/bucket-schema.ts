import { text } from '../../validation/kinds.js'
import { object } from '../../validation/structures.js'
import { count, epochMs, listOf, windowMs } from './common-schemas.js'

const bucketBand = object(
  {
    label: text,
    limit: count(),
    remaining: count(),
    resetAt: epochMs('The time at which the bucket is full or its window ends.'),
    windowMs,
  },
  {},
  { title: 'BucketBand', isOpen: true },
)

export const bucketSchema = object(
  { ruleSetId: text, ruleId: text, key: text, bands: listOf(bucketBand) },
  {},
  { title: 'Bucket', isOpen: true },
)
