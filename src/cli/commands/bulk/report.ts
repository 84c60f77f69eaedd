import type { BulkReport } from '../../../redis/bulk/bulk-load.js'
import { exitStatus } from '../../exit-status.js'
import { formatDuration } from '../../output/format-duration.js'
import { paintFor, print, printJson } from '../../output/output.js'

interface ReportOptions {
  readonly emit?: true
  readonly dryRun?: true
  readonly json?: true
}

/** Prints the report and sets the exit status. Failed records go to standard error, one per line. */
export function printReport(report: BulkReport, { emit, dryRun, json }: ReportOptions): void {
  const { failed, stoppedBy } = report
  process.exitCode = failed === 0 && stoppedBy === undefined ? exitStatus.ok : exitStatus.negative
  if (json) printJson(asJson(report))
  else printSummary(report, dryRun ? 'valid' : emit ? 'written' : 'loaded', emit)
}

/** Prints failures and the summary. With `isEmitted`, standard output carries data, so the summary goes to standard error. */
export function printSummary(report: BulkReport, outcome: string, isEmitted = false): void {
  for (const line of failureLines(report, isEmitted)) process.stderr.write(`${line}\n`)
  const summary = summaryOf(report, outcome)
  if (isEmitted) process.stderr.write(`${summary}\n`)
  else print(summary)
}

function summaryOf({ records, done, failed, elapsedMs }: BulkReport, outcome: string): string {
  const count = (value: number): string => value.toLocaleString('en')
  const rate = Math.round((done * 1_000) / Math.max(1, elapsedMs))
  const failures = failed === 0 ? '' : `, ${count(failed)} failed`
  const took = `in ${formatDuration(Math.max(1, Math.round(elapsedMs)))}, ${count(rate)}/s`
  return `${count(done)} of ${count(records)} records ${outcome}${failures}, ${took}`
}

function* failureLines(report: BulkReport, isEmitted: boolean): Generator<string> {
  const { failures, failed, stoppedBy, resumeFromLine } = report
  const paint = paintFor(process.stderr)
  for (const { line, message } of failures) yield `${paint('red', '✗')} line ${line}: ${message}`
  if (failed > failures.length) yield `  … and ${(failed - failures.length).toLocaleString('en')} more`
  // No resume hint here: an interrupted import has changed nothing, and only the reader of the output knows what arrived.
  if (stoppedBy !== undefined && (isEmitted || 'isLive' in report))
    yield `${paint('red', 'error:')} ${stoppedBy.message}`
  else if (stoppedBy !== undefined)
    yield `${paint('red', 'error:')} ${stoppedBy.message} Resume with --from-line ${resumeFromLine}: Redis has replied to every record before it, and may have executed some after it.`
}

export function asJson({ stoppedBy, elapsedMs, ...report }: BulkReport): object {
  const stop = stoppedBy && { stoppedBy: { code: stoppedBy.code, message: stoppedBy.message } }
  return { ...report, elapsedMs: Math.round(elapsedMs), ...stop }
}
