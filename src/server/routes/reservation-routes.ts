import { json, type Reply, type Route, route } from '../request/route.js'
import {
  cancelMembers,
  cancelSchema,
  reservationSchema,
  reserveMembers,
  reserveSchema,
  settledSchema,
  settleMembers,
  settleSchema,
} from '../schemas/reservation-schemas.js'
import type { ServerGate } from '../server-gate.js'
import { chargeOf, contextOf, traceHeaders, unknownMembers, warned, warningHeader } from './check-routes.js'

const group = 'Decisions'

/** Reservations: an estimate is charged first and later replaced with the actual cost. */
export function reservationRoutes(gate: ServerGate): Route[] {
  const reply = async (body: object, names: readonly string[], result: Promise<unknown>): Promise<Reply> => {
    const warning = unknownMembers(body, names)
    return warning === undefined ? json(await result) : warned(gate, warning, result, json)
  }
  return [
    route({
      method: 'POST',
      path: '/api/ratelimit/reserve',
      name: 'reserve',
      summary: 'Charge an estimate of the cost of a request, if it is allowed.',
      group,
      access: 'CHECK',
      body: reserveSchema,
      responses: {
        200: { description: 'The decision, allowed or rejected.', schema: reservationSchema, headers: warningHeader },
      },
      handle({ body, headers }) {
        const { ttlMs, id, onExpire } = body
        const options = { ...chargeOf(body), ttlMs, id: id ?? undefined, onExpire }
        return reply(body, reserveMembers, gate.reserve(contextOf(body, traceHeaders(headers)), options))
      },
    }),
    route({
      method: 'POST',
      path: '/api/ratelimit/settle',
      name: 'settle',
      summary: 'Replace the estimate of a reservation with its actual cost.',
      group,
      access: 'CHECK',
      body: settleSchema,
      responses: {
        200: { description: 'How the reservation has ended.', schema: settledSchema, headers: warningHeader },
      },
      handle({ body }) {
        const { id, permits, costs } = body
        const settled = gate.settle(id, { permits: permits ?? undefined, costs: costs ?? undefined })
        return reply(body, settleMembers, settled)
      },
    }),
    route({
      method: 'POST',
      path: '/api/ratelimit/cancel',
      name: 'cancel',
      summary: 'Refund a reservation completely.',
      group,
      access: 'CHECK',
      body: cancelSchema,
      responses: {
        200: { description: 'How the reservation has ended.', schema: settledSchema, headers: warningHeader },
      },
      handle: ({ body }) => reply(body, cancelMembers, gate.cancel(body.id)),
    }),
  ]
}
