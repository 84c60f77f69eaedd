import Type from 'typebox'
import { count, epochMs } from './common-schemas.js'

export const bucketSchema = Type.Object(
  {
    ruleSetId: Type.String(),
    ruleId: Type.String(),
    key: Type.String(),
    bands: Type.Array(
      Type.Object(
        {
          label: Type.String(),
          limit: count(),
          remaining: count(),
          resetAt: epochMs('The time at which the bucket is full or its window ends.'),
          windowMs: Type.Number({ exclusiveMinimum: 0 }),
        },
        { title: 'BucketBand' },
      ),
    ),
  },
  { title: 'Bucket' },
)
