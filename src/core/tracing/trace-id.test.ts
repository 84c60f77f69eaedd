import { expect, it } from 'vitest'
import { sampledTraceOf, traceIdOf } from './trace-id.js'

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

const span = 'cd'.repeat(8)
const sampled = { traceId: id, spanId: span }

it.each([
  [`00-${id}-${span}-01`, sampled],
  [`00-${id}-${span}-00`, undefined],
  [`00-${id}-${span}-03`, sampled],
  [`01-${id}-${span}-f1-more`, sampled],
  [`00-${id}-${span}-010`, undefined],
  [`ff-${id}-${span}-01`, undefined],
  [`00-${'0'.repeat(32)}-${span}-01`, undefined],
  [`00-${id}-${'0'.repeat(16)}-01`, undefined],
  [undefined, undefined],
])('%s is sampled as %j', (traceparent, expected) => {
  expect(sampledTraceOf({ traceparent })).toEqual(expected)
})
