/** The messages of envoy.service.ratelimit.v3. `reflection/files` declares the same fields. */
import { GrpcError } from '../grpc/status.js'
import { WireReader } from '../protobuf/wire-reader.js'
import { WireWriter } from '../protobuf/wire-writer.js'

export interface RateLimitRequest {
  readonly domain: string
  readonly descriptors: readonly Descriptor[]
  /** The hits of descriptors without their own; 0 means 1. */
  readonly hitsAddend: number
}

export interface Descriptor {
  readonly entries: readonly Entry[]
  readonly limit: LimitOverride | undefined
  /** Undefined if the message does not have it. */
  readonly hitsAddend: number | undefined
  /** True if the hits are given back. */
  readonly isNegative: boolean
}

export interface Entry {
  readonly key: string
  readonly value: string
}

/** A limit that replaces that of the rules. */
export interface LimitOverride {
  readonly requestsPerUnit: number
  readonly unit: number
  readonly unitMultiplier: number
}

export const codes = { ok: 1, overLimit: 2 } as const

export interface RateLimitResponse {
  readonly overallCode: number
  readonly statuses: readonly DescriptorStatus[]
  readonly headers: Readonly<Record<string, string>>
}

export interface DescriptorStatus {
  readonly code: number
  readonly limit: CurrentLimit | undefined
  readonly limitRemaining: number
  /** Undefined without a limit. */
  readonly secondsUntilReset: number | undefined
}

export interface CurrentLimit {
  readonly name: string
  readonly requestsPerUnit: number
  readonly unit: number
  /** 1 is not sent. */
  readonly unitMultiplier: number
}

/** More descriptors than any proxy sends, so that one call cannot keep the store busy. */
export const maxDescriptors = 256
const maxEntries = 64

/** Decodes a request. Throws `MalformedMessage` or a GrpcError. */
export function decodeRequest(bytes: Buffer): RateLimitRequest {
  const reader = new WireReader(bytes)
  const descriptors: Descriptor[] = []
  let domain = ''
  let hitsAddend = 0
  while (reader.next()) {
    if (reader.field === 1) domain = reader.string()
    else if (reader.field === 2) {
      if (descriptors.length === maxDescriptors)
        throw new GrpcError('INVALID_ARGUMENT', `A request must have at most ${maxDescriptors} descriptors.`)
      const outer = reader.enter()
      descriptors.push(decodeDescriptor(reader))
      reader.leave(outer)
    } else if (reader.field === 3) hitsAddend = reader.uint32()
    else reader.skip()
  }
  return { domain, descriptors, hitsAddend }
}

function decodeDescriptor(reader: WireReader): Descriptor {
  const entries: Entry[] = []
  let limit: LimitOverride | undefined
  let hitsAddend: number | undefined
  let isNegative = false
  while (reader.next()) {
    if (reader.field === 4) isNegative = reader.bool()
    else if (reader.field > 4) reader.skip()
    else {
      const outer = reader.enter()
      if (reader.field === 2) limit = decodeLimit(reader)
      else if (reader.field === 3) hitsAddend = decodeWrapped(reader, () => reader.uint64())
      else {
        if (entries.length === maxEntries)
          throw new GrpcError('INVALID_ARGUMENT', `A descriptor must have at most ${maxEntries} entries.`)
        entries.push(decodeEntry(reader))
      }
      reader.leave(outer)
    }
  }
  return { entries, limit, hitsAddend, isNegative }
}

function decodeEntry(reader: WireReader): Entry {
  let key = ''
  let value = ''
  while (reader.next()) {
    if (reader.field === 1) key = reader.string()
    else if (reader.field === 2) value = reader.string()
    else reader.skip()
  }
  return { key, value }
}

function decodeLimit(reader: WireReader): LimitOverride {
  let requestsPerUnit = 0
  let unit = 0
  let unitMultiplier = 1
  while (reader.next()) {
    if (reader.field === 1) requestsPerUnit = reader.uint32()
    else if (reader.field === 2) unit = reader.uint32()
    else if (reader.field === 3) {
      const outer = reader.enter()
      unitMultiplier = decodeWrapped(reader, () => reader.uint32())
      reader.leave(outer)
    } else reader.skip()
  }
  return { requestsPerUnit, unit, unitMultiplier }
}

/** Decodes a wrapper of google.protobuf, whose only field is `value`. */
function decodeWrapped(reader: WireReader, read: () => number): number {
  let value = 0
  while (reader.next())
    if (reader.field === 1) value = read()
    else reader.skip()
  return value
}

const writer = new WireWriter()

export function encodeResponse({ overallCode, statuses, headers }: RateLimitResponse): Buffer {
  writer.uint(1, overallCode)
  for (let i = 0; i < statuses.length; i++) {
    const start = writer.begin(2)
    encodeStatus(statuses[i] as DescriptorStatus)
    writer.end(start)
  }
  for (const name in headers) {
    const start = writer.begin(3)
    writer.string(1, name)
    writer.string(2, headers[name] as string)
    writer.end(start)
  }
  return writer.finish()
}

function encodeStatus({ code, limit, limitRemaining, secondsUntilReset }: DescriptorStatus): void {
  writer.uint(1, code)
  if (limit !== undefined) {
    const start = writer.begin(2)
    writer.uint(1, limit.requestsPerUnit)
    writer.uint(2, limit.unit)
    writer.string(3, limit.name)
    if (limit.unitMultiplier !== 1) {
      const wrapped = writer.begin(4)
      writer.uint(1, limit.unitMultiplier)
      writer.end(wrapped)
    }
    writer.end(start)
  }
  writer.uint(3, limitRemaining)
  if (secondsUntilReset === undefined) return
  const start = writer.begin(4)
  writer.uint(1, secondsUntilReset)
  writer.end(start)
}
