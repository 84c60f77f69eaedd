import { getPriority, setPriority } from 'node:os'

/**
 * Gives test servers a higher priority than their clients. Stores have a default deadline of 100 ms, and sentinels one
 * of a few seconds. A server without CPU time for that long looks like an outage, which only outage tests should see.
 * Without permission to raise priorities, other tests see it too on an overloaded machine.
 */
export function raisePriority(pid: number): void {
  try {
    setPriority(pid, Math.max(-20, getPriority() - 10))
  } catch {}
}
