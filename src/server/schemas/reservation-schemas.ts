import { maxReservationMs } from '../../core/reservations/reservation.js'
import { described } from '../../validation/kind.js'
import { boundedText, oneOf, text, wholeNumber } from '../../validation/kinds.js'
import { nullable } from '../../validation/structures.js'
import { requestFields } from './check-schema.js'
import { openObject } from './common-schemas.js'
import { decisionSchema } from './decision-schema.js'

const id = described(
  boundedText(1, 256),
  'Identifies the reservation, without control characters. A call with a known ID charges nothing and returns the first result.',
)

const required = {
  ttlMs: described(
    wholeNumber(1, maxReservationMs),
    'Time within which the reservation must be settled or canceled, in milliseconds.',
  ),
}

const optional = {
  ...requestFields,
  id: nullable(id),
  onExpire: described(
    oneOf(['KEEP', 'REFUND'] as const),
    'A reservation that is never settled stays charged (KEEP, the default), or is refunded after `ttlMs`.',
  ),
}

export const reserveSchema = openObject(
  'Reserve',
  required,
  optional,
  'The request and the estimate of its costs. An unknown member has no effect and causes a warning.',
)

/** The members of a reservation. */
export const reserveMembers: readonly string[] = [...Object.keys(required), ...Object.keys(optional)]

export const reservationSchema = openObject('Reservation', {
  decision: decisionSchema,
  id: described(text, 'The ID for settling and canceling, if the decision is allowed.'),
})

const actual = { permits: requestFields.permits, costs: requestFields.costs }

export const settleSchema = openObject(
  'Settle',
  { id },
  {
    permits: described(actual.permits, 'The actual permits. Default: the reserved ones.'),
    costs: described(actual.costs, 'The actual costs by name. A cost that is missing costs what was reserved.'),
  },
)

export const settleMembers: readonly string[] = ['id', 'permits', 'costs']

export const cancelSchema = openObject('Cancel', { id })

export const cancelMembers: readonly string[] = ['id']

export const settledSchema = openObject('SettledReservation', {
  id: text,
  status: described(oneOf(['SETTLED', 'CANCELED'] as const), 'How the reservation has ended, by the first call.'),
  decision: decisionSchema,
})
