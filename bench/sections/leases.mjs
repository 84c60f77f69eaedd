// @ts-check
/** LEASED compared with EXACT: CPU time of Redis for several distributions of keys and numbers of processes. */
import { leaseDistributions } from '../redis/lease-distributions.mjs'
import { leaseProcesses } from '../redis/lease-processes.mjs'
import { startServer } from '../redis/server.mjs'

/** @type {import('../results/report.mjs').Section} */
export async function leases(effort) {
  const server = await startServer()
  try {
    const distributions = await leaseDistributions(server, effort)
    const processes = await leaseProcesses(server, effort)
    return {
      title: 'Leases',
      note: 'One Redis server, one token bucket per key. Redis CPU is the CPU time of the main thread of Redis per decision. The limit is never reached, except where the table says so. Shares are decisions per process, or allowed decisions at the limit.',
      tables: [],
      figures: [distributions.table, processes.table],
      ratios: [
        ...distributions.ratios.map(({ name, measured }) => ({
          what: `CPU time of Redis, ${name}, LEASED vs EXACT`,
          measured,
          atMost: 1,
        })),
        ...processes.rows.map(({ name, serverUs }) => ({
          what: `CPU µs of Redis per decision, LEASED, ${name}`,
          measured: serverUs,
          atMost: 0.3,
        })),
      ],
    }
  } finally {
    await server.stop()
  }
}
