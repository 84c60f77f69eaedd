import { FluxGateError } from '../core/errors.js'
import type { Rule } from '../core/rule.js'
import { type BulkOptions, type BulkReport, bulkLoad as loadInto } from '../redis/bulk/bulk-load.js'
import { csvRecords, splitFields } from '../redis/bulk/csv-records.js'
import { Fields } from '../redis/bulk/fields.js'
import type { Encoded, RecordFormat } from '../redis/bulk/record-source.js'
import { OverrideReader, overrideColumns, rowDocument } from '../rules/override-records.js'
import { OverrideImport } from '../stores/override-import.js'
import { encodeTerms } from '../stores/override-value.js'
import { type BulkInput, chunksOf } from './bulk-load.js'
import { openRedis } from './open-redis.js'
import { type RedisOptions, redisTarget } from './open-redis-target.js'

export interface OverrideImportOptions
  extends Omit<BulkOptions, 'format' | 'command' | 'delimiter' | 'fromLine' | 'maxFailures'> {
  readonly format: 'csv' | 'jsonl'
  readonly ruleSetId: string
  /** The rule as it is in force. */
  readonly rule: Rule
  /** What the names of all keys begin with; default `fluxgate`. */
  readonly prefix?: string
  readonly ipv6Prefix?: number
  /** Reads all of it and sends nothing. */
  readonly dryRun?: boolean
}

export interface OverrideImportReport extends BulkReport {
  /** Whether the imported overrides are in force, in the place of all that the rule had. */
  readonly isLive: boolean
}

/**
 * Replaces all overrides of a rule by those of a file. If one of them is wrong, or does not arrive, nothing changes.
 */
export async function bulkOverrides(
  redis: string | RedisOptions,
  input: BulkInput,
  options: OverrideImportOptions,
): Promise<OverrideImportReport> {
  const { ruleSetId, rule, prefix = 'fluxgate', dryRun, format: spelling, ipv6Prefix = 56, ...bulk } = options
  if (!rule.overrides)
    throw new FluxGateError(
      'FLUXGATE_OVERRIDE_INVALID',
      `Rule "${rule.id}" does not look for overrides; give it overrides: true.`,
    )
  const where = typeof redis === 'string' ? { uri: redis } : redis
  const chunks = chunksOf(input)
  const reader = new OverrideReader(rule, Date.now(), ipv6Prefix, encodeTerms)
  const counts = { ranges: new Set<string>() }
  if (dryRun) {
    const format = formatOf(spelling, reader, (key) => ['HSET', key], counts)
    return { ...(await loadInto({ kind: 'nowhere' }, chunks, { ...bulk, format })), isLive: false }
  }
  const connection = openRedis(where, { replyMs: bulk.silenceMs ?? 10_000 })
  try {
    await connection.ready(10_000)
    const import_ = new OverrideImport(connection, prefix, { ruleSetId, ruleId: rule.id })
    await import_.begin()
    return await run(import_)
  } finally {
    await connection.close()
  }

  async function run(import_: OverrideImport): Promise<OverrideImportReport> {
    let isLive = false
    try {
      const format = formatOf(spelling, reader, (...override) => import_.commandOf(...override), counts)
      const report = await loadInto(redisTarget(where), chunks, { ...bulk, format })
      if (report.failed === 0 && report.stoppedBy === undefined) {
        await import_.goLive(report.created, counts.ranges.size)
        isLive = true
      }
      return { ...report, isLive }
    } finally {
      // The error that brought us here, if there is one, says more.
      if (!isLive) await import_.abandon().catch(() => {})
    }
  }
}

type CommandOf = OverrideImport['commandOf']

function formatOf(
  spelling: 'csv' | 'jsonl',
  reader: OverrideReader<Buffer>,
  commandOf: CommandOf,
  { ranges }: { ranges: Set<string> },
): RecordFormat {
  const write = (
    found: ReturnType<OverrideReader<Buffer>['read']>,
    out: Parameters<RecordFormat['encode']>[3],
  ): Encoded => {
    if (typeof found === 'string') return { mistake: found }
    if (found.isRange) ranges.add(found.key)
    out.addCommand(commandOf(found.key, found.isRange, found.value))
    return 'written'
  }
  if (spelling === 'jsonl')
    return {
      encode(bytes, from, to, out) {
        const text = bytes.toString('utf8', from, to).trim()
        return text === '' ? 'nothing' : write(reader.readJson(text), out)
      },
    }
  const fields = new Fields()
  let columns: readonly string[] | undefined
  const { endOf } = csvRecords(undefined)
  return {
    ...(endOf && { endOf }),
    encode(bytes, from, to, out) {
      if (from === to) return 'nothing'
      const mistake = splitFields(bytes, from, to, comma, fields)
      if (mistake !== undefined) return { mistake }
      if (columns === undefined) {
        columns = checkColumns(rowOf(fields))
        return 'nothing'
      }
      const names = columns
      if (fields.count !== names.length) return { mistake: `found ${fields.count} columns; expected ${names.length}` }
      const keyAt = names.indexOf('key')
      // Everything but the key, which is most often the first.
      const name =
        keyAt === 0 && fields.sourceOf(0) === bytes
          ? bytes.toString('utf8', fields.endOf(0), to)
          : othersOf(fields, keyAt)
      return write(
        reader.read(fields.text(keyAt), name, () => rowDocument(names, rowOf(fields))),
        out,
      )
    },
  }
}

const rowOf = (fields: Fields): string[] => Array.from({ length: fields.count }, (_, i) => fields.text(i))

const othersOf = (fields: Fields, keyAt: number): string =>
  rowOf(fields)
    .filter((_, i) => i !== keyAt)
    .join('\0')

const comma = 0x2c

function checkColumns(row: readonly string[]): readonly string[] {
  const names = row.map((name) => name.trim())
  const unknown = names.filter((name) => !overrideColumns.includes(name))
  if (unknown.length === 0 && names.includes('key') && names.includes('action')) return names
  throw new FluxGateError(
    'FLUXGATE_BULK_INPUT_INVALID',
    `The first line names the columns ${names.join(', ')}; allowed: key, action and any of ${overrideColumns.slice(2).join(', ')}.`,
  )
}
