import { Command } from 'commander'
import { omitUndefined } from '../../../core/omit-undefined.js'
import type { Rule, RuleSet } from '../../../core/rule.js'
import { createFluxGate } from '../../../gate/create-flux-gate.js'
import { bulkOverrides, type OverrideImportReport } from '../../../gate/overrides/bulk-overrides.js'
import { nearest } from '../../../validation/nearest.js'
import { exitStatus } from '../../exit-status.js'
import { UsageError } from '../../failure.js'
import { readConfig } from '../../options/read-config.js'
import { knownRuleSet } from '../../options/rule-set-option.js'
import { configOption, ruleSetOption, rulesOption } from '../../options/shared-options.js'
import { print, printJson } from '../../output/output.js'
import { formatOfName } from './input.js'
import { formatOption, type LoadOptions, redisOf, runLoad, withLoadOptions } from './load.js'
import { asJson, printSummary } from './report.js'

interface BulkOverridesOptions extends LoadOptions<'csv' | 'jsonl'> {
  readonly rule: string
  readonly ruleSet?: string
  readonly rules?: string
}

const examples = `
Examples:
  $ fluxgate bulk overrides customers.csv --rule per-key
      key,action,capacity,window
      acme,LIMIT,5000,1m
      our-own,ALLOW,,
  $ fluxgate bulk overrides moved.csv --rule per-key
      key,action,balance
      acme,LIMIT,37
  $ fluxgate bulk overrides listed.jsonl.gz --rule-set api --rule per-address --dry-run
      {"key": "10.0.0.0/8", "action": "DENY", "expiresAt": "2030-01-01T00:00:00Z"}

The import is atomic: it replaces all overrides of the rule, or none if any record is invalid.
Exit status: 0 overrides in effect, 1 nothing changed, 2 nothing could be sent.
`

export function bulkOverridesCommand(): Command {
  const command = new Command('overrides')
    .description('Replace all overrides of a rule with the records of a file, atomically.')
    .argument('<file>', 'CSV or JSON lines, optionally gzipped; - for standard input')
    .requiredOption('--rule <id>', 'rule that the overrides belong to')
    .addOption(ruleSetOption())
    .addOption(rulesOption())
    .addOption(configOption('the store and the rules', './fluxgate.yaml'))
    .option('--redis <uri>', 'Redis server (default: store of the configuration)')
    .addOption(formatOption(['csv', 'jsonl']))
  return withLoadOptions(command).addHelpText('after', examples).action(importOverrides)
}

async function importOverrides(file: string, options: BulkOverridesOptions): Promise<void> {
  const { fast, rate: ratePerSecond, dryRun } = options
  const format = options.format ?? formatOfName(file)
  if (format === 'commands')
    throw new UsageError(`Cannot determine the format of ${file}. Pass --format csv or --format jsonl.`)
  const config = await readConfig(options)
  const { ruleSetId, rule } = await findRule(options, config.file)
  const report = await runLoad(file, async (input, hooks) =>
    bulkOverrides(await redisOf(options), input, {
      format,
      ruleSetId,
      rule,
      prefix: config.store.prefix,
      ipv6Prefix: config.ratelimit.ipv6Prefix,
      ...hooks,
      ...omitUndefined({ fast, ratePerSecond, dryRun }),
    }),
  )
  printImportReport(report, options)
}

async function findRule(
  { rules, ruleSet, rule: ruleId }: BulkOverridesOptions,
  config: string | undefined,
): Promise<{ ruleSetId: string; rule: Rule }> {
  const source = rules !== undefined || config === undefined ? { rules: rules ?? './rules.yaml' } : { config }
  const gate = await createFluxGate({ ...source, store: 'memory', reload: { strategy: 'NONE' } })
  try {
    const ruleSetId =
      knownRuleSet(gate.ruleSets, ruleSet) ?? (gate.ruleSets.length === 1 ? gate.ruleSets[0]?.id : 'default')
    const set = gate.ruleSets.find(({ id }) => id === ruleSetId) as RuleSet
    const rule = set.rules.find(({ id }) => id === ruleId)
    if (rule !== undefined) return { ruleSetId: set.id, rule }
    const ids = set.rules.map(({ id }) => id)
    const suggestion = nearest(ruleId, ids)
    throw new UsageError(
      `Rule "${ruleId}" does not exist in rule set "${set.id}".${suggestion ? ` Did you mean "${suggestion}"?` : ''} Known rules: ${ids.join(', ')}.`,
    )
  } finally {
    await gate.close()
  }
}

function printImportReport(report: OverrideImportReport, { dryRun, json }: BulkOverridesOptions): void {
  const isComplete = report.failed === 0 && report.stoppedBy === undefined
  process.exitCode = isComplete ? exitStatus.ok : exitStatus.negative
  if (json) printJson(asJson(report))
  else {
    printSummary(report, dryRun ? 'valid' : 'written')
    if (report.isLive) print('The overrides are in effect and replace all previous overrides of the rule.')
    else if (!dryRun) print('Nothing has changed.')
  }
}
