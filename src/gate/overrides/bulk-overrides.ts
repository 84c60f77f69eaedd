import { FluxGateError } from '../../core/errors.js'
import type { Rule } from '../../core/rule.js'
import { type BulkOptions, type BulkReport, bulkLoad as loadInto } from '../../redis/bulk/bulk-load.js'
import { type BulkInput, chunksOf } from '../../redis/bulk/open-bulk-load.js'
import { openRedis } from '../../redis/client/open/open-redis.js'
import { type RedisOptions, redisTarget } from '../../redis/client/open/target.js'
import { OverrideReader } from '../../rules/schema/override-records.js'
import { OverrideImport } from '../../stores/redis/overrides/import.js'
import { encodeTerms } from '../../stores/redis/overrides/value.js'
import { type OverrideTarget, overrideLines, overrideTable } from './override-format.js'

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

/** So many overrides go in one command: beside a live limiter few, because others wait for it. */
const together = 4
const togetherFast = 32

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
  const formatFor = spelling === 'csv' ? overrideTable : overrideLines
  if (dryRun) {
    const format = formatFor(reader, nowhere)
    return { ...(await loadInto({ kind: 'nowhere' }, chunks, { ...bulk, format })), isLive: false }
  }
  const connection = openRedis(where, { replyMs: bulk.silenceMs ?? 10_000 })
  try {
    await connection.ready(10_000)
    const import_ = new OverrideImport(
      connection,
      prefix,
      { ruleSetId, ruleId: rule.id },
      bulk.fast ? togetherFast : together,
    )
    await import_.begin()
    return await run(import_)
  } finally {
    await connection.close()
  }

  async function run(import_: OverrideImport): Promise<OverrideImportReport> {
    let isLive = false
    const ranges = new Set<string>()
    try {
      const format = formatFor(reader, targetOf(import_, ranges))
      const report = await loadInto(redisTarget(where), chunks, { ...bulk, format })
      if (report.failed === 0 && report.stoppedBy === undefined) {
        await import_.goLive(report.created, ranges.size)
        isLive = true
      }
      return { ...report, isLive }
    } finally {
      // The error that brought us here, if there is one, says more.
      if (!isLive) await import_.abandon().catch(() => {})
    }
  }

  function targetOf(import_: OverrideImport, ranges: Set<string>): OverrideTarget {
    // An address has many spellings; and braces in the prefix would be what says the slot.
    const areKeysPlain = rule.limitScope !== 'IP' && !prefix.includes('{')
    return {
      write(key, isRange, value, out) {
        if (isRange) ranges.add(key)
        return import_.write(key, isRange, value, out)
      },
      writePlain: areKeysPlain ? (...plain) => import_.writePlain(...plain) : undefined,
      writeRest: (out) => import_.writeRest(out),
    }
  }
}

const nowhere: OverrideTarget = {
  write(key, _isRange, _value, out) {
    out.addCommand(['HSET', key])
    return true
  },
  writePlain: undefined,
  writeRest: () => false,
}
