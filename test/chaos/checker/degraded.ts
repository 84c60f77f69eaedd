/** A degraded decision is legal only while a fault explains it; after that, decisions are exact again. */

import { type Entry, groupBy, type History, type Incident } from '../history.js'
import type { Violation } from './checker.js'

/** Loop time that a process has after the end of a fault until its decisions must be exact. */
const graceMs = { outage: 1_000, cut: 50 } as const

/** A server that could not run for this long may have missed the deadline of the handlers that asked it. */
const silentServerMs = 80

/** The process that asks another process, and the process that it asks. */
export const remoteProcess = 'remote'
export const serverProcess = 'server'

/** The process that asks Redis whether it answers. */
const harnessProcess = 'harness'

export function checkDegraded(history: History): Violation[] {
  const { entries, loops } = history
  const silences = loops.gaps(serverProcess, silentServerMs).map(
    ({ from, to }): Incident => ({
      fault: `${serverProcess} did not run`,
      from,
      to,
      explains: 'outage',
      processes: [remoteProcess],
    }),
  )
  // Nothing shows whether Redis answered while the harness could not run. A busy machine may have stopped both.
  const unobserved = loops
    .gaps(harnessProcess, silentServerMs)
    .map(({ from, to }): Incident => ({ fault: `${harnessProcess} did not run`, from, to, explains: 'cut' }))
  const incidents = [...history.incidents, ...silences, ...unobserved]
  const unexplained = entries.filter(
    (entry) => entry.degraded && !incidents.some((incident) => isExplained(entry, incident, history)),
  )
  // One report per process and period of a second, because what follows the first has the same cause.
  const groups = groupBy(unexplained, ({ process, startAt }) => `${process} ${Math.floor(startAt / 1e6)}`)
  return [...groups.values()].map((group) => {
    const [first] = group as [Entry]
    const last = history.incidents.filter(({ from }) => from <= first.startAt).sort((a, b) => b.to - a.to)[0]
    const since = last
      ? `${((first.startAt - last.to) / 1_000).toFixed(0)} ms after "${last.fault}"`
      : 'before any fault'
    const text = `${group.length} degraded decisions of ${first.process} that no fault explains, the first ${since}`
    return { kind: 'unexplained degraded decision' as const, text, entries: group }
  })
}

function isExplained(entry: Entry, incident: Incident, { loops }: History): boolean {
  const { explains, processes, users, from, to } = incident
  if (explains === 'none' || entry.endAt < from) return false
  if (processes && !processes.includes(entry.process)) return false
  if (users && !users.includes(entry.user)) return false
  const involved = entry.process === remoteProcess ? [remoteProcess, serverProcess] : [entry.process]
  return involved.some((process) => entry.startAt <= loops.after(process, to, graceMs[explains]))
}
