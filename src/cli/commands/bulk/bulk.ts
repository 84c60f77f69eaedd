import { Command, Option } from 'commander'
import { given } from '../../../core/omit-undefined.js'
import type { BulkOptions, BulkReport } from '../../../redis/bulk/bulk-load.js'
import { bulkCheck, bulkEmit, bulkLoad } from '../../../redis/bulk/open-bulk-load.js'
import { UsageError } from '../../failure.js'
import { wholeNumber } from '../../options/option-values.js'
import { reportClosedOutput } from '../../output/output.js'
import { stopOnSignal } from '../../start/stop.js'
import { formatOfName, openInput } from './input.js'
import { bulkOverridesCommand } from './overrides.js'
import { progressBar } from './progress.js'
import { redisOf } from './redis.js'
import { tellReport } from './report.js'

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
      one command to a line, as typed into redis-cli: SET greeting "hello world"
  $ fluxgate bulk users.csv.gz --command 'HSET user:<id> name <name> tier <tier>'
      the first line names the columns; <id> stands for a field
  $ fluxgate bulk events.jsonl --command 'XADD events * user <user.id> data <data>' --rate 5000
  $ fluxgate bulk users.csv --command 'SET user:<1> <2>' --dry-run
      a file without a first line of names: fields by their number; nothing is sent
  $ fluxgate bulk commands.txt --emit | redis-cli --pipe

Exit status: 0 all records arrived, 1 some did not, 2 nothing could be sent.
`

export function bulkCommand(): Command {
  return new Command('bulk')
    .enablePositionalOptions()
    .description('Load many records into Redis, gently or fast, and say what became of each.')
    .argument('[file]', 'what to load, packed with gzip or not; - is standard input', '-')
    .addOption(new Option('--format <format>', 'by the name of the file').choices(['commands', 'csv', 'jsonl']))
    .option('--command <template>', 'what to make of each record; <name> stands for a field')
    .option('--delimiter <character>', 'what separates the fields of CSV; a comma')
    .addOption(
      new Option('--redis <uri>', 'where; redis://127.0.0.1:6379 unless the settings say otherwise').conflicts(
        'config',
      ),
    )
    .option('--config <file>', 'settings whose store to load into; ./fluxgate.yaml')
    .option('--fast', 'for a server with nothing else to do: as much at once as the network takes')
    .addOption(new Option('--rate <n>', 'records a second at most').argParser(wholeNumber(1, 1e9)))
    .addOption(new Option('--from-line <n>', 'pass over what is before this line').argParser(wholeNumber(1, 1e15)))
    .addOption(new Option('--emit', 'write the protocol of Redis to standard output instead').conflicts(['json']))
    .addOption(new Option('--dry-run', 'read all of it, and send nothing').conflicts(['emit']))
    .option('--json', 'print the report as JSON')
    .addCommand(bulkOverridesCommand())
    .addHelpText('after', examples)
    .action(bulk)
}

async function bulk(file: string, options: BulkCommandOptions): Promise<void> {
  const format = options.format ?? formatOfName(file)
  if (format === 'commands' && options.command !== undefined)
    throw new UsageError('--command is for records of fields: add --format csv or --format jsonl.')
  const bar = progressBar(process.stderr)
  const input = await openInput(file, (read, size) => bar.read(read, size))
  const interruption = new AbortController()
  stopOnSignal(
    async () => interruption.abort(),
    () => {},
  )
  const load: BulkOptions = {
    ...given({ command: options.command, delimiter: options.delimiter, fromLine: options.fromLine }),
    ...given({ fast: options.fast, ratePerSecond: options.rate }),
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
  tellReport(report, options)
}
