/** Formats the results of a run. */
import type { Violation } from './checker/checker.js'
import type { Entry, History } from './history.js'
import type { RunResult } from './run.js'

const mostEntries = 12

export function summary({ history, violations }: RunResult): string {
  const { entries } = history
  const degraded = entries.filter((entry) => entry.degraded).length
  const failed = entries.filter(({ error }) => error !== undefined).length
  const admitted = entries.filter(({ allowed }) => allowed).length
  const counts = `${entries.length} requests, ${admitted} allowed, ${degraded} degraded, ${failed} failed`
  return `${counts}, ${unplannedMs(history)} ms of unplanned silence, ${violations.length} violations`
}

/** How long Redis did not answer the control client without a fault of the schedule: on an idle machine, hardly ever. */
function unplannedMs({ incidents }: History): number {
  const planned = incidents.filter(({ isObserved, explains }) => !isObserved && explains !== 'none')
  const unplanned = incidents.filter(
    ({ isObserved, processes, from, to }) =>
      isObserved && !processes && !planned.some((one) => one.from <= to && one.to >= from),
  )
  return Math.round(unplanned.reduce((sum, { from, to }) => sum + to - from, 0) / 1_000)
}

export function describe({ topology, seed, faultMs, startAt, history, violations }: RunResult): string {
  const at = (us: number) => `${((us - startAt) / 1e6).toFixed(6)} s`
  const faults = history.incidents.map(
    ({ fault, from, to, explains }) => `  ${at(from)} to ${at(to)}: ${fault} (explains: ${explains})`,
  )
  const shown = violations.flatMap((violation) => [
    `${violation.kind}: ${violation.text}${violation.sentAt === undefined ? '' : `, sent at ${at(violation.sentAt)}`}`,
    ...evidence(violation).map((entry) => `  ${line(entry, at)}${loopTimes(entry, history)}`),
    ...(violation.entries.length > mostEntries ? [`  … and ${violation.entries.length - mostEntries} more`] : []),
  ])
  return [
    `${topology}, seed ${seed}: ${violations.length} violations`,
    'Faults:',
    ...faults,
    'Violations:',
    ...shown,
    `Replay: npm run chaos -- --topology ${topology} --seed ${seed} --seconds ${faultMs / 1_000}`,
  ].join('\n')
}

const evidence = ({ entries }: Violation): readonly Entry[] =>
  entries.toSorted((a, b) => a.startAt - b.startAt).slice(0, mostEntries)

/** The time in which the process and the harness could run: much less than wall-clock time if they starved. */
function loopTimes({ process, startAt, endAt }: Entry, { loops }: History): string {
  const [own, harness] = [process, 'harness'].map((name) => loops.between(name, startAt, endAt))
  return `, loop time ${own} ms of ${process}, ${harness} ms of the harness`
}

function line(entry: Entry, at: (us: number) => string): string {
  const { process, decidedBy, startAt, endAt, path, user, permits, allowed, degraded, reason, delayMs, error } = entry
  const outcome = error ?? `${allowed ? 'allowed' : 'rejected'} (${reason})${degraded ? ' degraded' : ''}`
  const charges = entry.charges.map(({ rule, limit, resetAt }) => `${rule} limit ${limit} reset ${resetAt}`).join(', ')
  const delay = delayMs > 0 ? `, delay ${delayMs} ms` : ''
  return `${at(startAt)} to ${at(endAt)} ${process} by ${decidedBy}: ${path} ${user} ×${permits} ${outcome}${delay} [${charges}]`
}
