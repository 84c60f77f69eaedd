import Type from 'typebox'

export const bucketSchema = Type.Object(
  {
    ruleSetId: Type.String(),
    ruleId: Type.String(),
    key: Type.String(),
    bands: Type.Array(
      Type.Object({
        label: Type.String(),
        limit: Type.Integer(),
        remaining: Type.Integer(),
        resetAt: Type.Integer({ description: 'Epoch milliseconds at which the bucket is full, or its window ends.' }),
        windowMs: Type.Number(),
      }),
    ),
  },
  { title: 'Bucket' },
)
