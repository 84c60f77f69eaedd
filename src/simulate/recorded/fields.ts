import type { RequestContext } from '../../core/request-context.js'
import { type Costs, maxCapacity, maxWindowTicks } from '../../core/rule.js'
import type { Arrival } from '../arrival.js'
import { parseTimestamp } from './timestamp.js'

/** Common field names in structured logs. Compared without case, `_`, `-`, `.` and `@`. */
const names = {
  time: ['time', 'timestamp', 'ts', 'datetime', 'date', 'timelocal', 'timeiso8601', 'eventtime', 'at', 't'],
  clientIp: ['clientip', 'ip', 'remoteaddr', 'remoteaddress', 'remoteip', 'clienthost', 'client', 'address'],
  userId: ['userid', 'user', 'remoteuser', 'username'],
  apiKey: ['apikey'],
  method: ['method', 'requestmethod', 'httpmethod', 'verb'],
  path: ['path', 'url', 'uri', 'requesturi', 'requestpath', 'endpoint'],
  // The time of the request in some logs. In those of nginx, which also have another time, it is the duration.
  requestTime: ['requesttime'],
  durationMs: ['durationms', 'responsetime', 'responsetimems', 'latencyms', 'elapsedms', 'timetakenms'],
  durationSeconds: ['durationsec', 'durationseconds', 'elapsedseconds', 'latencyseconds'],
} as const

export type FieldName = keyof typeof names
const fieldNames = Object.keys(names) as FieldName[]

/** Units of durations, in ticks. */
export const durationUnits = { ns: 0.001, us: 1, ms: 1_000, s: 1_000_000 } as const
export type DurationUnit = keyof typeof durationUnits

/** Fields that are not recognised by their names. */
export interface RecordedFields {
  /** The field of each cost by its name. Numbers are rounded up. */
  readonly costFields?: Readonly<Record<string, string>> | undefined
  /** The field with the duration of the request. */
  readonly durationField?: { readonly name: string; readonly unit: DurationUnit } | undefined
}

/** The values of one line: by known field, and by the name of the field in the recording. */
export interface LineValues {
  read(field: FieldName): unknown
  named(name: string): unknown
}

/** The field that a column or property of this name contains, or undefined if it is not used. */
export function fieldOf(name: string): FieldName | undefined {
  const plain = name.toLowerCase().replace(/[^a-z0-9]/g, '')
  return fieldNames.find((field) => (names[field] as readonly string[]).includes(plain))
}

/** Builds an arrival from the values of a line. Returns undefined without a valid time. */
export function arrivalOf(values: LineValues, fields: RecordedFields): Arrival | undefined {
  const time = values.read('time')
  const at = parseTimestamp(time ?? values.read('requestTime'))
  if (at === undefined) return undefined
  const context: RequestContext = {
    clientIp: textOf(values.read('clientIp')),
    userId: textOf(values.read('userId')),
    apiKey: textOf(values.read('apiKey')),
    method: textOf(values.read('method')),
    path: textOf(values.read('path')),
  }
  const duration = durationOf(values, fields, time !== undefined)
  const costs = costsOf(values, fields)
  return {
    at,
    context,
    ...(duration === undefined ? undefined : { duration }),
    ...(costs === undefined ? undefined : { costs }),
  }
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value)
  return typeof value === 'string' && value !== '' && value !== '-' ? value : undefined
}

function durationOf({ read, named }: LineValues, { durationField }: RecordedFields, hasTime: boolean) {
  if (durationField !== undefined) return ticksOf(named(durationField.name), durationUnits[durationField.unit])
  return (
    ticksOf(read('durationMs'), durationUnits.ms) ??
    ticksOf(read('durationSeconds'), durationUnits.s) ??
    (hasTime ? ticksOf(read('requestTime'), durationUnits.s) : undefined)
  )
}

function ticksOf(value: unknown, unit: number): number | undefined {
  const amount = amountOf(value)
  return amount === undefined ? undefined : Math.min(maxWindowTicks, Math.round(amount * unit))
}

/** A number of at least 0, or text that contains one. */
function amountOf(value: unknown): number | undefined {
  const amount = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  return typeof amount === 'number' && Number.isFinite(amount) && amount >= 0 ? amount : undefined
}

/** Reads the costs of a line. A request without a valid value does not have that cost. */
export function costsOf({ named }: Pick<LineValues, 'named'>, { costFields }: RecordedFields): Costs | undefined {
  if (costFields === undefined) return undefined
  const costs: Record<string, number> = {}
  for (const cost in costFields) {
    const amount = amountOf(named(costFields[cost] as string))
    if (amount !== undefined) costs[cost] = Math.min(maxCapacity, Math.ceil(amount))
  }
  return costs
}
