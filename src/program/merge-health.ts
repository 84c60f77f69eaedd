import type { ServerHealth } from '../server/server-gate.js'

/** Merges the health of several processes. Each part has the worst status, with its earliest time. */
export function mergeHealth(all: readonly ServerHealth[]): ServerHealth {
  const [first] = all as [ServerHealth]
  return {
    status: (['DOWN', 'DEGRADED'] as const).find((status) => all.some((one) => one.status === status)) ?? 'UP',
    store: worst(all.map(({ store }) => store)) ?? first.store,
    rules: worst(all.map(({ rules }) => rules)) ?? first.rules,
  }
}

interface Part {
  readonly status: string
  readonly sinceAt: number | null
  readonly error: string | null
}

/** The part that failed first; without a failure, a part with an error message. */
function worst<P extends Part>(parts: readonly P[]): P | undefined {
  const failed = parts.filter(({ status }) => status !== 'UP')
  if (failed.length === 0) return parts.find(({ error }) => error !== null)
  return failed.reduce((one, other) => ((other.sinceAt ?? 0) < (one.sinceAt ?? 0) ? other : one))
}
