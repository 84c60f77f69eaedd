/** Every request is answered, and by its deadline: in loop time, so that a process that was not allowed to run is not late. */

import type { Entry, History } from '../history.js'
import type { Violation } from './checker.js'

const timeoutMs = 100
const connectTimeoutMs = 2_000
/** A deadline passes in whole slices of the loop, gives pending replies one more turn, and is measured in slices of 5 ms. */
const marginMs = 60
/** The client, the process that is asked, and the upstream each take turns of their own. */
const httpMarginMs = 3 * marginMs

export function checkDeadlines(history: History): Violation[] {
  const firstExact = new Map<string, number>()
  for (const { life, degraded, error, endAt } of history.entries)
    if (!degraded && error === undefined) firstExact.set(life, Math.min(endAt, firstExact.get(life) ?? endAt))
  const late = history.entries.flatMap((entry) => {
    if (entry.error !== undefined) return []
    const tookMs = loopTime(entry, history)
    // Until its first connection a process waits for that.
    const isConnecting = entry.startAt < (firstExact.get(entry.life) ?? Number.POSITIVE_INFINITY)
    const margin = isOverHttp(entry) ? httpMarginMs : marginMs
    const allowedMs = timeoutMs + margin + (isConnecting ? connectTimeoutMs : 0)
    if (tookMs <= allowedMs || (isOverHttp(entry) && isStarved(entry, tookMs))) return []
    const text = `${entry.process} answered after ${tookMs} ms of loop time; at most ${allowedMs} ms are allowed`
    return [{ kind: 'late answer' as const, text, entries: [entry] }]
  })
  const never = history.unanswered.map(({ process, path, startAt }) => ({
    kind: 'no answer' as const,
    text: `${process} never answered a request for ${path}`,
    entries: [],
    sentAt: startAt,
  }))
  return [...late, ...never]
}

/** The harness asks these, and has to run too to see their answer. */
const isOverHttp = ({ process }: Entry): boolean => process === 'gateway' || process === 'server'

/**
 * A server that gets less than half of the time that it needs has a backlog of requests that no deadline has begun for. It
 * must still answer them all.
 */
const isStarved = ({ startAt, endAt }: Entry, tookMs: number): boolean => 2 * tookMs < (endAt - startAt) / 1_000

function loopTime(entry: Entry, { loops }: History): number {
  const { process, startAt, endAt } = entry
  const own = loops.between(process, startAt, endAt)
  return isOverHttp(entry) ? Math.min(own, loops.between('harness', startAt, endAt)) : own
}
