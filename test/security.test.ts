import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { settings } from '../src/config/settings.js'
import { longestKey } from '../src/core/keys/bounded-key.js'
import { maxOpenReservations } from '../src/core/reservations/reservation.js'
import { maxCapacity, maxConcurrency, maxLogCapacity } from '../src/core/rule.js'
import { maxIds } from '../src/core/scheduling/expiring-ids.js'
import { defaultLimits as grpc } from '../src/envoy/grpc/grpc-server.js'
import { maxDescriptors } from '../src/envoy/ratelimit/messages.js'
import { maxHeadSize } from '../src/gateway/upstream/response-head.js'
import { maxInformational } from '../src/gateway/upstream/upstream-request.js'
import { maxDepth } from '../src/rules/document/json-text.js'
import { maxBands } from '../src/rules/schema/fields/band-schema.js'
import { maxNodes } from '../src/rules/schema/fields/json-value.js'
import { maxPathLength } from '../src/rules/schema/fields/request-kinds.js'
import { maxRulesPerSet } from '../src/rules/schema/parse-rules.js'
import { defaultTimes, maxHeaderBytes } from '../src/server/api-server.js'
import { maxStreams, maxWaitingBytes } from '../src/server/event-streams.js'
import { maxHeaders } from '../src/server/request/api-request.js'
import { maxBodyBytes } from '../src/server/request/read-body.js'
import { maxBatch } from '../src/server/schemas/check-schema.js'
import { pageParameters } from '../src/server/schemas/common-schemas.js'
import { maxStates } from '../src/stores/memory/bans.js'
import { maxBans } from '../src/stores/redis/bans/ban-index.js'
import { maxKeys } from '../src/telemetry/candidates/report.js'
import { keptKeys, maxRecent } from '../src/telemetry/statistics/local-statistics.js'

const number = (value: unknown): string => Number(value).toLocaleString('en-US')
const bytes = (value: unknown): string =>
  Number(value) % 2 ** 20 === 0 ? `${Number(value) / 2 ** 20} MiB` : `${Number(value) / 1_024} KiB`
const seconds = (ms: number): string => `${ms / 1_000} s`
const { gateway, store, waitForRefill } = settings

/** The second column of the table, by the first. */
const bounds: Readonly<Record<string, unknown>> = {
  'server: request body': bytes(maxBodyBytes),
  'server: header fields': number(maxHeaders),
  'server: URL and headers together': bytes(maxHeaderBytes),
  'server: time to send headers': seconds(defaultTimes.headersMs),
  'server: time to send a request': seconds(defaultTimes.requestMs),
  'server: JSON nesting': `${maxDepth} levels`,
  'server: checks in one batch': number(maxBatch),
  'server: event streams': number(maxStreams),
  'server: unsent bytes of one event stream': bytes(maxWaitingBytes),
  'server: items on one page': number(pageParameters.limit.schema.maximum as number),
  'Envoy: message': bytes(grpc.maxMessageLength),
  'Envoy: incomplete messages of all calls': bytes(grpc.maxIncompleteBytes),
  'Envoy: descriptors of one call': number(maxDescriptors),
  'Envoy: streams of one connection': number(grpc.maxStreams),
  'Envoy: connections': number(grpc.maxConnections),
  'Envoy: time to receive a request or to read its response': seconds(grpc.callMs),
  'gateway: request headers': bytes(gateway.maxHeaderSize.defaultValue),
  'gateway: URL': `${number(gateway.maxUrlLength.defaultValue)} characters`,
  'gateway: time without progress of a body': spelt(gateway.idleTimeout.defaultValue),
  'gateway: minimum upload rate, averaged over each grace period': `${gateway.minUploadRate.defaultValue} bytes per second`,
  'gateway: upload grace period': spelt(gateway.uploadGracePeriod.defaultValue),
  'gateway: connections to one upstream': number(gateway.maxConnections.defaultValue),
  'gateway: share of these connections for one client address': String(gateway.clientShare.defaultValue),
  'gateway: time to connect to an upstream': spelt(gateway.connectTimeout.defaultValue),
  'gateway: time to receive a response head': spelt(gateway.responseTimeout.defaultValue),
  'gateway: response headers of an upstream': bytes(maxHeadSize),
  'gateway: informational (1xx) responses to one request': number(maxInformational),
  'memory store: keys': number(store.maxKeys.defaultValue),
  'memory store: keys with counted rejections or bans': number(maxStates),
  'memory store: reservations': number(store.maxReservations.defaultValue),
  'Redis: listed bans of one rule': number(maxBans),
  'open reservations of one bucket': number(maxOpenReservations),
  'open holds and reservations that a process counts, each': number(maxIds),
  'keys stored verbatim; longer ones are stored as a digest': `${longestKey} bytes`,
  'requests waiting for a refill': number(waitForRefill.maxConcurrentWaits.defaultValue),
  'time a request waits for a refill': spelt(waitForRefill.maxWaitTime.defaultValue),
  'time a decision waits for Redis': `${store.timeoutMs.defaultValue} ms`,
  'statistics: recent decisions': number(maxRecent),
  'statistics: keys': number(keptKeys),
  'report of a candidate: keys': number(maxKeys),
  'rules in one set': number(maxRulesPerSet),
  'bands of one rule': number(maxBands),
  'path pattern': `${number(maxPathLength)} characters`,
  'values in one rule': number(maxNodes),
  'capacity of a band': number(maxCapacity),
  'capacity of a sliding window log': number(maxLogCapacity),
  'capacity of a concurrency limit': number(maxConcurrency),
}

/** `5s` → `5 s`, `5m` → `5 min`. */
function spelt(duration: unknown): string {
  return String(duration)
    .replace(/^(\d+)m$/, '$1 min')
    .replace(/^(\d+)s$/, '$1 s')
}

it('SECURITY.md lists the bounds that the code has', () => {
  const [, table = ''] = /^## Bounds\n([\s\S]*?)^## /m.exec(readFileSync('SECURITY.md', 'utf8')) ?? []
  const rows = [...table.matchAll(/^\| (.+?) \| (.+?) \| ?(.*?) ?\|$/gm)].slice(1)
  expect(Object.fromEntries(rows.map(([, name, bound]) => [name, bound]))).toEqual(bounds)
  for (const [, name, , key] of rows) {
    const [section, setting] = (key ?? '').replaceAll('`', '').split('.')
    if (section) expect(settings[section as keyof typeof settings], name).toHaveProperty(setting ?? '')
  }
})
