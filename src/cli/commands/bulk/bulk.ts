import { Command, Option } from 'commander'
import { omitUndefined } from '../../../core/omit-undefined.js'
import { bulkCheck, bulkEmit, bulkLoad } from '../../../redis/bulk/open-bulk-load.js'
import { UsageError } from '../../failure.js'
import { wholeNumber } from '../../options/option-values.js'
import { reportClosedOutput } from '../../output/output.js'
import { formatOfName } from './input.js'
import { formatOption, type LoadOptions, redisOf, runLoad, withLoadOptions } from './load.js'
import { bulkOverridesCommand } from './overrides.js'
import { printReport } from './report.js'

interface BulkCommandOptions extends LoadOptions {
  readonly command?: string
  readonly delimiter?: string
  readonly fromLine?: number
  readonly emit?: true
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
  const command = new Command('bulk')
    .enablePositionalOptions()
    .description('Load records into Redis in bulk and report every failed record.')
    .argument('[file]', 'input file, optionally gzipped; - for standard input', '-')
    .addOption(formatOption(['commands', 'csv', 'jsonl']))
    .option('--command <template>', 'Redis command for each record; <name> is replaced with a field')
    .option('--delimiter <character>', 'CSV field separator (default: comma)')
    .addOption(
      new Option(
        '--redis <uri>',
        'Redis server (default: store of the configuration, or redis://127.0.0.1:6379)',
      ).conflicts('config'),
    )
    .option('--config <file>', 'configuration file whose store to load into (default: ./fluxgate.yaml)')
    .addOption(new Option('--from-line <n>', 'skip all lines before this one').argParser(wholeNumber(1, 1e15)))
    .addOption(
      new Option('--emit', 'write the Redis protocol to standard output instead').conflicts(['json', 'dryRun']),
    )
  return withLoadOptions(command).addCommand(bulkOverridesCommand()).addHelpText('after', examples).action(bulk)
}

async function bulk(file: string, options: BulkCommandOptions): Promise<void> {
  const { command, delimiter, fromLine, fast, rate: ratePerSecond } = options
  const format = options.format ?? formatOfName(file)
  if (format === 'commands' && command !== undefined)
    throw new UsageError('--command needs records with fields. Add --format csv or --format jsonl.')
  const report = await runLoad(file, async (input, hooks) => {
    const load = { ...omitUndefined({ command, delimiter, fromLine, fast, ratePerSecond }), ...hooks, format }
    if (options.dryRun) return bulkCheck(input, load)
    if (!options.emit) return bulkLoad(await redisOf(options), input, load)
    reportClosedOutput()
    return bulkEmit(process.stdout, input, load)
  })
  printReport(report, options)
}
