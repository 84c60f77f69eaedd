import { getPriority, setPriority } from 'node:os'

/**
 * Gives a server of the tests precedence over their clients, whatever priority these have. Stores have a deadline of 100 ms
 * by default, and sentinels one of a few seconds. A server that gets no CPU for that long is an outage, which only the tests
 * of outages may see. Without the permission to raise priorities, a starved machine shows it to the others too.
 */
export function raisePriority(pid: number): void {
  try {
    setPriority(pid, Math.max(-20, getPriority() - 10))
  } catch {}
}
