/** Every request is answered, and by its deadline: in loop time, so that a process that was not allowed to run is not late. */
import type { Violation } from './checker.js'
import type { Entry, History } from './history.js'

const timeoutMs = 100
const connectTimeoutMs = 2_000
/** A deadline passes in whole slices of the loop, gives pending replies one more turn, and is measured in slices of 5 ms. */
const marginMs = 60

export function checkDeadlines(history: History): Violation[] {
  const firstExact = new Map<string, number>()
  for (const { life, degraded, error, endAt } of history.entries)
    if (!degraded && error === undefined) firstExact.set(life, Math.min(endAt, firstExact.get(life) ?? endAt))
  const late = history.entries.flatMap((entry) => {
    if (entry.error !== undefined) return []
    const tookMs = loopTime(entry, history)
    // Until its first connection a process waits for that.
    const isConnecting = entry.startAt < (firstExact.get(entry.life) ?? Number.POSITIVE_INFINITY)
    const allowedMs = timeoutMs + marginMs + (isConnecting ? connectTimeoutMs : 0) + held(entry)
    if (tookMs <= allowedMs) return []
    const text = `${entry.process} answered after ${tookMs} ms of loop time; at most ${allowedMs} ms are allowed`
    return [{ kind: 'late answer' as const, text, entries: [entry] }]
  })
  const never = history.unanswered.map(({ process, path }) => ({
    kind: 'no answer' as const,
    text: `${process} never answered a request for ${path}`,
    entries: [],
  }))
  return [...late, ...never]
}

/** A gateway holds a delayed request; the others return the delay. */
const held = (entry: Entry): number => (entry.process === 'gateway' ? entry.delayMs : 0)

function loopTime({ process, startAt, endAt }: Entry, { loops }: History): number {
  const own = loops.between(process, startAt, endAt)
  // The harness asks these, and has to run too to see their answer.
  return process === 'gateway' || process === 'server' ? Math.min(own, loops.between('harness', startAt, endAt)) : own
}
