import { expect, it } from 'vitest'
import { traceIdOf } from './trace-id.js'

const id = 'ab'.repeat(16)
const rest = `${'cd'.repeat(8)}-01`

it.each([
  [{ traceparent: `00-${id}-${rest}` }, id],
  // Of versions to come, but not of the one that is forbidden.
  [{ traceparent: `01-${id}-${rest}-more` }, id],
  [{ traceparent: `ff-${id}-${rest}` }, undefined],
  [{ traceparent: `00-${'0'.repeat(32)}-${rest}` }, undefined],
  [{ traceparent: id }, undefined],
  [{ traceparent: `ff-${id}-${rest}`, 'x-trace-id': 'order-7' }, 'order-7'],
  [{ 'x-trace-id': 'a b' }, undefined],
  [{}, undefined],
])('%j is about %s', (headers, expected) => {
  expect(traceIdOf(headers)).toBe(expected)
})
