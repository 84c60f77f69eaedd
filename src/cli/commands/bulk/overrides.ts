import { Command, Option } from 'commander'
import { loadConfig } from '../../../config/config.js'
import { given } from '../../../core/omit-undefined.js'
import type { Rule, RuleSet } from '../../../core/rule.js'
import { createFluxGate } from '../../../gate/create-flux-gate.js'
import { bulkOverrides, type OverrideImportReport } from '../../../gate/overrides/bulk-overrides.js'
import { nearest } from '../../../validation/nearest.js'
import { exitStatus } from '../../exit-status.js'
import { UsageError } from '../../failure.js'
import { wholeNumber } from '../../options/option-values.js'
import { knownRuleSet } from '../../options/rule-set-option.js'
import { print, printJson } from '../../output/output.js'
import { stopOnSignal } from '../../start/stop.js'
import { formatOfName, openInput } from './input.js'
import { progressBar } from './progress.js'
import { redisOf } from './redis.js'
import { asJson, tell } from './report.js'

interface BulkOverridesOptions {
  readonly rule: string
  readonly ruleSet?: string
  readonly rules?: string
  readonly config?: string
  readonly redis?: string
  readonly format?: 'csv' | 'jsonl'
  readonly fast?: true
  readonly rate?: number
  readonly dryRun?: true
  readonly json?: true
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

All overrides of the rule are replaced at once, or none: if a record is wrong, nothing changes.
Exit status: 0 they are in force, 1 nothing has changed, 2 nothing could be sent.
`

export function bulkOverridesCommand(): Command {
  return new Command('overrides')
    .description('Replace all overrides of a rule by those of a file: all of them, or nothing changes.')
    .argument('<file>', 'CSV or JSON lines, packed with gzip or not; - is standard input')
    .requiredOption('--rule <id>', 'the rule that they are exceptions to')
    .option('--rule-set <id>', 'its set, if there are several')
    .option('--rules <file>', 'the rules, YAML or JSON; those of the settings, or ./rules.yaml')
    .option('--config <file>', 'settings that name the store and the rules; ./fluxgate.yaml')
    .option('--redis <uri>', 'where; the store of the settings')
    .addOption(new Option('--format <format>', 'by the name of the file').choices(['csv', 'jsonl']))
    .option('--fast', 'for a server with nothing else to do')
    .addOption(new Option('--rate <n>', 'records a second at most').argParser(wholeNumber(1, 1e9)))
    .option('--dry-run', 'read all of it, and send nothing')
    .option('--json', 'print the report as JSON')
    .addHelpText('after', examples)
    .action(importOverrides)
}

async function importOverrides(file: string, options: BulkOverridesOptions): Promise<void> {
  const named = options.format ?? formatOfName(file)
  if (named === 'commands') throw new UsageError('Say how the file is spelt: --format csv or --format jsonl.')
  const config = await loadConfig({ path: options.config, env: process.env, cwd: process.cwd() })
  const { ruleSetId, rule } = await findRule(options, config.file)
  const bar = progressBar(process.stderr)
  const input = await openInput(file, (read, size) => bar.read(read, size))
  const interruption = new AbortController()
  stopOnSignal(
    async () => interruption.abort(),
    () => {},
  )
  let report: OverrideImportReport
  try {
    report = await bulkOverrides(await redisOf(options), input, {
      format: named,
      ruleSetId,
      rule,
      prefix: config.store.prefix,
      ipv6Prefix: config.ratelimit.ipv6Prefix,
      signal: interruption.signal,
      onProgress: (progress) => bar.show(progress),
      ...given({ fast: options.fast, ratePerSecond: options.rate, dryRun: options.dryRun }),
    })
  } finally {
    bar.clear()
  }
  tellImport(report, options)
}

async function findRule(
  { rules, ruleSet, rule: ruleId }: BulkOverridesOptions,
  config: string | undefined,
): Promise<{ ruleSetId: string; rule: Rule }> {
  const source = rules !== undefined || config === undefined ? { rules: rules ?? './rules.yaml' } : { config }
  const gate = await createFluxGate({ ...source, store: 'memory', reload: { strategy: 'NONE' } })
  try {
    const asked =
      knownRuleSet(gate.ruleSets, ruleSet) ?? (gate.ruleSets.length === 1 ? gate.ruleSets[0]?.id : 'default')
    const set = gate.ruleSets.find(({ id }) => id === asked) as RuleSet
    const rule = set.rules.find(({ id }) => id === ruleId)
    if (rule !== undefined) return { ruleSetId: set.id, rule }
    const ids = set.rules.map(({ id }) => id)
    const meant = nearest(ruleId, ids)
    throw new UsageError(
      `There is no rule "${ruleId}" in "${set.id}".${meant ? ` Did you mean "${meant}"?` : ''} Known: ${ids.join(', ')}.`,
    )
  } finally {
    await gate.close()
  }
}

function tellImport(report: OverrideImportReport, { dryRun, json }: BulkOverridesOptions): void {
  const isRight = report.failed === 0 && report.stoppedBy === undefined
  process.exitCode = isRight ? exitStatus.ok : exitStatus.no
  if (json) printJson(asJson(report))
  else {
    tell(report, dryRun ? 'in order' : 'written')
    if (report.isLive) print('They are in force, in the place of all overrides that the rule had.')
    else if (!dryRun) print('Nothing has changed.')
  }
}
