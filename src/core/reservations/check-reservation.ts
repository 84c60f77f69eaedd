/** Validates the arguments of `reserve`, `settle` and `cancel`. */
import { ticksUp } from '../clock.js'
import { describeValue, FluxGateError } from '../errors.js'
import { type Costs, maxCapacity, requestCost } from '../rule.js'
import { maxReservationMs, type OnExpire, type ReserveOptions, type SettleOptions } from './reservation.js'

/** The terms of a reservation that do not depend on rules. */
export interface CheckedTerms {
  readonly id: string
  /** False if the id is a new random one. */
  readonly isNamed: boolean
  readonly ttlTicks: number
  readonly onExpire: OnExpire
}

const reserveNames: readonly string[] = [
  'ruleSetId',
  'permits',
  'costs',
  'ttlMs',
  'id',
  'onExpire',
] satisfies (keyof ReserveOptions)[]

const settleNames: readonly string[] = ['permits', 'costs'] satisfies (keyof SettleOptions)[]

/** `names` are the names of the options. */
export function checkReserveOptions(options: ReserveOptions, names: readonly string[] = reserveNames): CheckedTerms {
  checkNames('reserve', options, names)
  const { ttlMs, id, onExpire = 'KEEP' } = options
  if (typeof ttlMs !== 'number' || !(ttlMs >= 0.001 && ttlMs <= maxReservationMs))
    throw invalid(
      `ttlMs must be a number of milliseconds from 0.001 to ${maxReservationMs}, within which the reservation is settled; received ${describeValue(ttlMs)}.`,
    )
  if (onExpire !== 'KEEP' && onExpire !== 'REFUND')
    throw invalid(`onExpire must be KEEP or REFUND; received ${describeValue(onExpire)}.`)
  const isNamed = id != null
  return { id: isNamed ? checkReservationId(id) : newReservationId(), isNamed, ttlTicks: ticksUp(ttlMs), onExpire }
}

/** Returns the amounts by the name of the cost. */
export function checkSettleOptions(options: SettleOptions): Costs {
  checkNames('settle', options, settleNames)
  const { permits, costs = {} } = options
  if (typeof costs !== 'object' || costs === null || Array.isArray(costs))
    throw invalid(`costs must be an object such as { tokens: 1200 }; received ${describeValue(costs)}.`)
  for (const [name, value] of Object.entries(costs)) checkAmount(`costs.${name.slice(0, 128)}`, value)
  if (permits === undefined) return costs
  checkAmount('permits', permits)
  const requests = Object.hasOwn(costs, requestCost) ? costs[requestCost] : permits
  if (requests !== permits)
    throw invalid(
      `costs.requests must equal permits, which means the same; received ${requests} and ${permits}. Remove one.`,
    )
  return { ...costs, [requestCost]: permits }
}

/** Control characters are excluded, because ids appear in logs. */
const validId = /^[^\p{Cc}\p{Cs}]{1,256}$/u

export function checkReservationId(id: unknown): string {
  if (typeof id === 'string' && validId.test(id)) return id
  throw invalid(
    `id must be a string of 1 to 256 characters without control characters; received ${typeof id === 'string' ? `another string of ${id.length} characters` : describeValue(id)}.`,
  )
}

function checkNames(method: string, options: object, names: readonly string[]): void {
  if (typeof options !== 'object' || options === null)
    throw invalid(
      `The options of ${method} must be an object such as { ${names.filter((name) => name !== 'ruleSetId').join(', ')} }; received ${describeValue(options)}.`,
    )
  for (const name of Object.keys(options))
    if (!names.includes(name))
      throw invalid(
        `${method} has no option ${JSON.stringify(name.slice(0, 128))}. Its options are ${names.join(', ')}.`,
      )
}

function checkAmount(name: string, value: unknown): void {
  if (!Number.isInteger(value) || (value as number) < 0 || (value as number) > maxCapacity)
    throw invalid(`${name} must be an integer from 0 to ${maxCapacity}; received ${describeValue(value)}.`)
}

/** Ids must not be guessable, because a client that knows an id can settle its reservation. */
function newReservationId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

const invalid = (message: string): FluxGateError => new FluxGateError('FLUXGATE_ARGUMENT_INVALID', message)
