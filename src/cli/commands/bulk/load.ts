/** Options and execution shared by `bulk` and `bulk overrides`. */
import { type Command, Option } from 'commander'
import { redisSettings } from '../../../config/store.js'
import type { BulkFormat, BulkOptions } from '../../../redis/bulk/bulk-load.js'
import type { RedisOptions } from '../../../redis/client/open/target.js'
import { wholeNumber } from '../../options/option-values.js'
import { readConfig } from '../../options/read-config.js'
import { stopOnSignal } from '../../start/signals.js'
import { openInput } from './input.js'
import { progressBar } from './progress.js'

export interface LoadOptions<Format extends BulkFormat = BulkFormat> {
  readonly config?: string
  readonly redis?: string
  readonly format?: Format
  readonly fast?: true
  readonly rate?: number
  readonly dryRun?: true
  readonly json?: true
}

export const formatOption = (formats: readonly BulkFormat[]): Option =>
  new Option('--format <format>', 'input format (default: by file extension)').choices(formats)

/** Adds the options about speed, validation and output. */
export const withLoadOptions = (command: Command): Command =>
  command
    .option('--fast', 'send as fast as the network allows; use only on an idle server')
    .addOption(new Option('--rate <n>', 'maximum records per second').argParser(wholeNumber(1, 1e9)))
    .option('--dry-run', 'validate the whole file without sending anything')
    .option('--json', 'print the report as JSON')

/** The Redis to load into: `--redis`, the configured store, or redis://127.0.0.1:6379, in this order. */
export async function redisOf(options: { redis?: string; config?: string }): Promise<RedisOptions> {
  if (options.redis !== undefined) return { uri: options.redis }
  const { store } = await readConfig(options)
  return redisSettings(store) ?? { uri: 'redis://127.0.0.1:6379' }
}

type Hooks = Required<Pick<BulkOptions, 'signal' | 'onProgress'>>

/** Opens the input and runs `load` with a progress bar. The first SIGINT or SIGTERM aborts the signal. */
export async function runLoad<T>(
  file: string,
  load: (input: AsyncIterable<Uint8Array>, hooks: Hooks) => Promise<T>,
): Promise<T> {
  const bar = progressBar(process.stderr)
  const input = await openInput(file, (read, size) => bar.read(read, size))
  const interruption = new AbortController()
  stopOnSignal(
    async () => interruption.abort(),
    () => {},
  )
  try {
    return await load(input, { signal: interruption.signal, onProgress: (progress) => bar.show(progress) })
  } finally {
    bar.clear()
  }
}
