import { FluxGateError } from '../../core/errors.js'
import type { Rule } from '../../core/rule.js'
import { type BulkOptions, type BulkReport, bulkLoad as loadInto } from '../../redis/bulk/bulk-load.js'
import { type BulkInput, chunksOf } from '../../redis/bulk/open-bulk-load.js'
import { openRedis } from '../../redis/client/open/open-redis.js'
import { type RedisOptions, redisTarget } from '../../redis/client/open/target.js'
import { OverrideReader } from '../../rules/schema/overrides/override-records.js'
import { encodeTerms } from '../../stores/redis/overrides/encoding.js'
import { OverrideImport } from '../../stores/redis/overrides/import/override-import.js'
import { type OverrideTarget, overrideLines, overrideTable } from './override-format.js'

/** Options of `bulkOverrides`. */
export interface OverrideImportOptions
  extends Omit<BulkOptions, 'format' | 'command' | 'delimiter' | 'fromLine' | 'maxFailures'> {
  /** The format of the input. */
  readonly format: 'csv' | 'jsonl'
  /** The rule set of the rule. */
  readonly ruleSetId: string
  /** The current rule. It must have `overrides: true`. */
  readonly rule: Rule
  /** Prefix of all Redis keys; default `fluxgate`. */
  readonly prefix?: string
  /** IPv6 addresses that share this many bits count as one; default 56. */
  readonly ipv6Prefix?: number
  /** Validates the whole input without sending anything. */
  readonly dryRun?: boolean
}

/** Overrides per command. Small by default, because decisions of live limiters wait while a command runs. */
const batchSize = 4
const fastBatchSize = 32

/** The result of `bulkOverrides`. */
export interface OverrideImportReport extends BulkReport {
  /** True if the imported overrides are in effect and have replaced all previous overrides of the rule. */
  readonly isLive: boolean
}

/**
 * Replaces all overrides of a rule with the records of a file, atomically. Nothing changes if a record is invalid or the load
 * does not complete.
 */
export async function bulkOverrides(
  redis: string | RedisOptions,
  input: BulkInput,
  options: OverrideImportOptions,
): Promise<OverrideImportReport> {
  const { ruleSetId, rule, prefix = 'fluxgate', dryRun, format: inputFormat, ipv6Prefix = 56, ...bulk } = options
  if (!rule.overrides)
    throw new FluxGateError(
      'FLUXGATE_OVERRIDE_INVALID',
      `Overrides are disabled for rule "${rule.id}". Set overrides: true on the rule first.`,
    )
  const where = typeof redis === 'string' ? { uri: redis } : redis
  const chunks = chunksOf(input)
  const reader = new OverrideReader(rule, Date.now(), ipv6Prefix, encodeTerms)
  const formatFor = inputFormat === 'csv' ? overrideTable : overrideLines
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
      bulk.fast ? fastBatchSize : batchSize,
    )
    await import_.start()
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
        await import_.activate(report.created, ranges.size)
        isLive = true
      }
      return { ...report, isLive }
    } finally {
      // Errors are ignored, because the original error is more informative.
      if (!isLive) await import_.discard().catch(() => {})
    }
  }

  function targetOf(import_: OverrideImport, ranges: Set<string>): OverrideTarget {
    // Not for IP rules, because an address has several spellings; and not if braces in the prefix define the hash tag.
    const areKeysPlain = rule.limitScope !== 'IP' && !prefix.includes('{')
    return {
      write(key, isRange, value, out) {
        if (isRange) ranges.add(key)
        return import_.write(key, isRange, value, out)
      },
      writePlain: areKeysPlain ? (...plain) => import_.writePlain(...plain) : undefined,
      flush: (out) => import_.flush(out),
    }
  }
}

const nowhere: OverrideTarget = {
  write(key, _isRange, _value, out) {
    out.addCommand(['HSET', key])
    return true
  },
  writePlain: undefined,
  flush: () => false,
}
