// @ts-check
/**
 * `npm run bench -- console`: measures the web console in Chromium and writes the figures of docs/design/console.md. `--quick`
 * takes seconds and writes nothing.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { withBlock } from '../results/generated-block.mjs'
import { machine } from '../results/results-file.mjs'
import { progress } from '../runs/progress.mjs'
import { framesWith } from './events.mjs'
import { firstView } from './first-view.mjs'
import { logReplay } from './log-replay.mjs'
import { serverCost } from './server-cost.mjs'

const page = new URL('../../docs/design/console.md', import.meta.url)
const full = { loads: 15, frameSeconds: 15, events: 1_000, logLines: 1_000_000, pairs: 24, loadSeconds: 2 }
const quick = { loads: 1, frameSeconds: 1, events: 1_000, logLines: 20_000, pairs: 1, loadSeconds: 0.3 }

export async function consoleFigures(/** @type {readonly string[]} */ args) {
  const { values } = parseArgs({ args: [...args], options: { quick: { type: 'boolean', default: false } } })
  const size = values.quick ? quick : full
  progress('first view')
  const first = await firstView(size.loads)
  progress('frames')
  const idle = await framesWith(0, size.frameSeconds)
  const busy = await framesWith(size.events, size.frameSeconds)
  progress('log replay')
  const replay = await logReplay(size.logLines)
  progress('server cost')
  const cost = await serverCost(size.pairs, size.loadSeconds)
  progress('')
  const percent = (/** @type {number} */ share) => `${(100 * share).toFixed(1)} %`
  const frames = (/** @type {typeof idle} */ it) =>
    `${it.droppedFrames} of ${it.frames} frames dropped, main thread ${percent(it.busyShare)} busy`
  const rows = [
    ['first view, compressed scripts', '≤ 150 KB', `${first.scriptKb.toFixed(1)} KB`],
    [
      'first view, all files',
      '',
      `${first.allKb.toFixed(1)} KB in ${first.requests} requests, without the data of the API`,
    ],
    ['first data on the page, empty cache, median', '< 1 s', `${(first.shownMs / 1000).toFixed(2)} s`],
    ['overview without events', '', frames(idle)],
    [`overview with ${size.events.toLocaleString('en')} events per second`, 'no dropped frames', frames(busy)],
    [
      `what-if, ${size.logLines.toLocaleString('en')} lines against two rule sets`,
      '≤ 10 s per core',
      `${replay.seconds.toFixed(1)} s, ${replay.cpuSeconds.toFixed(1)} s of CPU time`,
    ],
    [
      'server, CPU time per check',
      '',
      `${cost.withoutUs.toFixed(1)} µs without a page, ${cost.withUs.toFixed(1)} µs with one`,
    ],
    ['server, additional CPU time per check with one open page, median', '< 2 %', percent(cost.share)],
    ['server, CPU time for one open page while there are no checks', '', `${cost.idleMs.toFixed(1)} ms per second`],
  ]
  const table = [['figure', 'target', 'measured'], ['---', '---', '---'], ...rows]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n')
  process.stdout.write(`${table}\n`)
  if (values.quick) return
  const date = new Date().toISOString().slice(0, 10)
  const text = `Measured on ${date}: ${machine()}.\n\n${table}`
  writeFileSync(page, withBlock(readFileSync(page, 'utf8'), 'figures', text))
}
