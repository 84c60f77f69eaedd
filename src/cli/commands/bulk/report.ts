import type { BulkReport } from '../../../redis/bulk/bulk-load.js'
import { exitStatus } from '../../exit-status.js'
import { formatDuration } from '../../output/format-duration.js'
import { paintFor, print, printJson } from '../../output/output.js'

interface ReportOptions {
  readonly emit?: true
  readonly dryRun?: true
  readonly json?: true
}

/** What became of the records; those that failed, each on a line of its own on standard error. */
export function tellReport(report: BulkReport, { emit, dryRun, json }: ReportOptions): void {
  const { failed, stoppedBy } = report
  process.exitCode = failed === 0 && stoppedBy === undefined ? exitStatus.ok : exitStatus.no
  if (json) printJson(asJson(report))
  else tell(report, dryRun ? 'in order' : emit ? 'written' : 'loaded', emit)
}

/** `isTaken`: standard output holds what was asked for already. */
export function tell(report: BulkReport, what: string, isTaken = false): void {
  for (const line of troubles(report, isTaken)) process.stderr.write(`${line}\n`)
  const summary = summaryOf(report, what)
  if (isTaken) process.stderr.write(`${summary}\n`)
  else print(summary)
}

function summaryOf({ records, done, failed, elapsedMs }: BulkReport, what: string): string {
  const count = (value: number): string => value.toLocaleString('en')
  const rate = Math.round((done * 1_000) / Math.max(1, elapsedMs))
  const failures = failed === 0 ? '' : `, ${count(failed)} failed`
  const took = `in ${formatDuration(Math.max(1, Math.round(elapsedMs)))}, ${count(rate)}/s`
  return `${count(done)} of ${count(records)} records ${what}${failures}, ${took}`
}

function* troubles(report: BulkReport, isEmitted: boolean): Generator<string> {
  const { failures, failed, stoppedBy, resumeFromLine } = report
  const paint = paintFor(process.stderr)
  for (const { line, message } of failures) yield `${paint('red', '✗')} line ${line}: ${message}`
  if (failed > failures.length) yield `  … and ${(failed - failures.length).toLocaleString('en')} more`
  // An import that was stopped has changed nothing, and begins anew. What reads the output knows how much of it arrived.
  if (stoppedBy !== undefined && (isEmitted || 'isLive' in report))
    yield `${paint('red', 'error:')} ${stoppedBy.message}`
  else if (stoppedBy !== undefined)
    yield `${paint('red', 'error:')} ${stoppedBy.message} Go on with --from-line ${resumeFromLine}: all records before it have been answered, and of those behind it some may have been carried out.`
}

export function asJson({ stoppedBy, elapsedMs, ...report }: BulkReport): object {
  const stop = stoppedBy && { stoppedBy: { code: stoppedBy.code, message: stoppedBy.message } }
  return { ...report, elapsedMs: Math.round(elapsedMs), ...stop }
}
