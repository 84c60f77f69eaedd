import { Command, Option } from 'commander'
import { omitUndefined } from '../../../core/omit-undefined.js'
import type { BulkOptions, BulkReport } from '../../../redis/bulk/bulk-load.js'
import { bulkCheck, bulkEmit, bulkLoad } from '../../../redis/bulk/open-bulk-load.js'
import { UsageError } from '../../failure.js'
import { wholeNumber } from '../../options/option-values.js'
import { reportClosedOutput } from '../../output/output.js'
import { stopOnSignal } from '../../start/signals.js'
import { formatOfName, openInput } from './input.js'
import { bulkOverridesCommand } from './overrides.js'
import { progressBar } from './progress.js'
import { redisOf } from './redis.js'
import { printReport } from './report.js'

interface BulkCommandOptions {
  readonly format?: NonNullable<BulkOptions['format']>
  readonly command?: string
  readonly delimiter?: string
  readonly redis?: string
  readonly config?: string
  readonly fast?: true
  readonly rate?: number
  readonly fromLine?: number
  readonly emit?: true
  readonly dryRun?: true
  readonly json?: true
}

const examples = `
Examples:
  $ fluxgate bulk commands.txt
      one command per line, in redis-cli syntax: SET greeting "hello world"
  $ fluxgate bulk users.csv.gz --command 'HSET user:<id> name <name> tier <tier>'
      the first line names the columns; <id> is replaced with that field
  $ fluxgate bulk events.jsonl --command 'XADD events * user <user.id> data <data>' --rate 5000
  $ fluxgate bulk users.csv --command 'SET user:<1> <2>' --dry-run
      validate a file without a header line: refer to fields by number
  $ fluxgate bulk commands.txt --emit | redis-cli --pipe

Exit status: 0 all records loaded, 1 some records failed, 2 nothing could be sent.
`

export function bulkCommand(): Command {
  return new Command('bulk')
    .enablePositionalOptions()
    .description('Load records into Redis in bulk and report every failed record.')
    .argument('[file]', 'input file, optionally gzipped; - for standard input', '-')
    .addOption(
      new Option('--format <format>', 'input format (default: by file extension)').choices([
        'commands',
        'csv',
        'jsonl',
      ]),
    )
    .option('--command <template>', 'Redis command for each record; <name> is replaced with a field')
    .option('--delimiter <character>', 'CSV field separator (default: comma)')
    .addOption(
      new Option(
        '--redis <uri>',
        'Redis server (default: store of the configuration, or redis://127.0.0.1:6379)',
      ).conflicts('config'),
    )
    .option('--config <file>', 'configuration file whose store to load into (default: ./fluxgate.yaml)')
    .option('--fast', 'send as fast as the network allows; use only on an idle server')
    .addOption(new Option('--rate <n>', 'maximum records per second').argParser(wholeNumber(1, 1e9)))
    .addOption(new Option('--from-line <n>', 'skip all lines before this one').argParser(wholeNumber(1, 1e15)))
    .addOption(new Option('--emit', 'write the Redis protocol to standard output instead').conflicts(['json']))
    .addOption(new Option('--dry-run', 'validate the whole file without sending anything').conflicts(['emit']))
    .option('--json', 'print the report as JSON')
    .addCommand(bulkOverridesCommand())
    .addHelpText('after', examples)
    .action(bulk)
}

async function bulk(file: string, options: BulkCommandOptions): Promise<void> {
  const format = options.format ?? formatOfName(file)
  if (format === 'commands' && options.command !== undefined)
    throw new UsageError('--command needs records with fields. Add --format csv or --format jsonl.')
  const bar = progressBar(process.stderr)
  const input = await openInput(file, (read, size) => bar.read(read, size))
  const interruption = new AbortController()
  stopOnSignal(
    async () => interruption.abort(),
    () => {},
  )
  const load: BulkOptions = {
    ...omitUndefined({ command: options.command, delimiter: options.delimiter, fromLine: options.fromLine }),
    ...omitUndefined({ fast: options.fast, ratePerSecond: options.rate }),
    format,
    signal: interruption.signal,
    onProgress: (progress) => bar.show(progress),
  }
  let report: BulkReport
  try {
    if (options.dryRun) report = await bulkCheck(input, load)
    else if (options.emit) {
      reportClosedOutput()
      report = await bulkEmit(process.stdout, input, load)
    } else report = await bulkLoad(await redisOf(options), input, load)
  } finally {
    bar.clear()
  }
  printReport(report, options)
}
