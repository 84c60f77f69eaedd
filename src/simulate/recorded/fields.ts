import type { RequestContext } from '../../core/request-context.js'
import type { Arrival } from '../arrival.js'
import { parseTimestamp } from './timestamp.js'

/** Common field names in structured logs. Compared without case, `_`, `-`, `.` and `@`. */
const names = {
  time: [
    'time',
    'timestamp',
    'ts',
    'datetime',
    'date',
    'timelocal',
    'timeiso8601',
    'eventtime',
    'requesttime',
    'at',
    't',
  ],
  clientIp: ['clientip', 'ip', 'remoteaddr', 'remoteaddress', 'remoteip', 'clienthost', 'client', 'address'],
  userId: ['userid', 'user', 'remoteuser', 'username'],
  apiKey: ['apikey'],
  method: ['method', 'requestmethod', 'httpmethod', 'verb'],
  path: ['path', 'url', 'uri', 'requesturi', 'requestpath', 'endpoint'],
} as const

export type FieldName = keyof typeof names

export const fieldNames = Object.keys(names) as FieldName[]

/** The field that a column or property of this name contains, or undefined if it is not used. */
export function fieldOf(name: string): FieldName | undefined {
  const plain = name.toLowerCase().replace(/[^a-z0-9]/g, '')
  return fieldNames.find((field) => (names[field] as readonly string[]).includes(plain))
}

/** Builds an arrival from the values of the known fields. Returns undefined without a valid time. */
export function arrivalOf(read: (field: FieldName) => unknown): Arrival | undefined {
  const at = parseTimestamp(read('time'))
  if (at === undefined) return undefined
  const text = (field: FieldName): string | undefined => textOf(read(field))
  const context: RequestContext = {
    clientIp: text('clientIp'),
    userId: text('userId'),
    apiKey: text('apiKey'),
    method: text('method'),
    path: text('path'),
  }
  return { at, context }
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value)
  return typeof value === 'string' && value !== '' && value !== '-' ? value : undefined
}
