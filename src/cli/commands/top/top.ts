import { setTimeout as sleep } from 'node:timers/promises'
import { Command, Option } from 'commander'
import { ticksPerMs } from '../../../core/clock.js'
import { duration, wholeNumber } from '../../options/option-values.js'
import { adminClient, serverOption } from '../../options/server-option.js'
import { paintFor, print, printJson } from '../../output/output.js'
import type { ServerClient } from '../../server-client.js'
import { type KeyCount, type StatisticsSummary, snapshotOf, type TopSnapshot, topLines } from './report.js'
import { enterScreen, leaveScreen, screenOf } from './screen.js'

interface TopOptions {
  readonly server?: string
  readonly interval?: number
  readonly limit?: number
  readonly once?: true
  readonly json?: true
}

const examples = `
Examples:
  $ fluxgate top
      watch http://127.0.0.1:8090: rates, rejections and the keys with the most of them; Ctrl-C ends it
  $ fluxgate top --server https://limits.example.org --interval 5s
  $ fluxgate top --json | jq .rates

Without a terminal, and with --once or --json, it prints one snapshot.
Keys are digests unless the server has revealKeys.
Exit status: 0 success, 2 the request to the server failed.
`

export function topCommand(): Command {
  return new Command('top')
    .description('Watch rates, rejections and the most rejected keys of a running server.')
    .addOption(serverOption())
    .addOption(new Option('--interval <duration>', 'time between updates (default: 1s)').argParser(duration))
    .addOption(
      new Option('--limit <n>', 'number of rules and keys to show (default: 10)').argParser(wholeNumber(1, 1_000)),
    )
    .option('--once', 'print one snapshot')
    .option('--json', 'print { server, at, sinceAt, rates, totals, rules, keys }')
    .addHelpText('after', examples)
    .action(top)
}

const minIntervalMs = 100

async function top({ interval, limit = 10, once, json, ...target }: TopOptions): Promise<void> {
  const client = adminClient(target)
  const first = await ask(client, limit)
  if (json) return printJson(first)
  if (once || !process.stdout.isTTY) return print(topLines(first, paintFor(process.stdout)).join('\n'))
  await watch(client, first, limit, Math.max(minIntervalMs, (interval ?? 1_000_000) / ticksPerMs))
}

async function ask(client: ServerClient, limit: number): Promise<TopSnapshot> {
  const [stats, top] = await Promise.all([
    client.request('GET', '/api/stats'),
    client.request('GET', `/api/stats/top?by=denied&limit=${limit}`),
  ])
  const { keys } = top.body as { readonly keys: readonly KeyCount[] }
  const rejected = keys.filter(({ denied }) => denied > 0)
  return snapshotOf(client.url, Date.now(), stats.body as StatisticsSummary, rejected, limit)
}

/** Redraws the alternate screen until a signal. A failed request is shown, and the next one may succeed. */
async function watch(client: ServerClient, first: TopSnapshot, limit: number, intervalMs: number): Promise<void> {
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())
  const paint = paintFor(process.stdout)
  let lines = topLines(first, paint)
  process.stdout.write(enterScreen)
  try {
    while (!stop.signal.aborted) {
      process.stdout.write(screenOf(lines, process.stdout.rows || 24))
      await sleep(intervalMs, undefined, { signal: stop.signal }).catch(() => {})
      if (stop.signal.aborted) break
      lines = await ask(client, limit).then(
        (snapshot) => topLines(snapshot, paint),
        (error: unknown) => [paint('red', error instanceof Error ? error.message : String(error))],
      )
    }
  } finally {
    process.stdout.write(leaveScreen)
  }
}
