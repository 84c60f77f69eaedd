// @ts-check
/** Degraded decisions caused by slow starts, stalls and lost connections while Redis is healthy. */
import { besideBusyLoops } from '../faults/busy-loops.mjs'
import { capacity, coldStarts, inFlight, stallMs } from '../faults/cold-start.mjs'
import { held, permitsLost } from '../faults/held-requests.mjs'
import { callers, oneCut, repeatedCuts } from '../faults/lost-connection.mjs'
import { median } from '../measure.mjs'
import { startServer } from '../redis/server.mjs'
import { figure } from '../results/report.mjs'

const title = 'Faults'

/** @type {import('../results/report.mjs').Section} */
export async function faults({ faults: { runs, processes, busyLoops, cuts, cutSeconds }, progress }) {
  const server = await startServer()
  try {
    const starts = await besideBusyLoops(busyLoops, () => coldStarts(server.uri, { runs, processes, progress }))
    const once = []
    for (let i = 0; i < cuts; i++) {
      progress(`${title}: lost connection ${i + 1} of ${cuts}`)
      once.push(await oneCut(server))
    }
    progress(`${title}: lost connection every 200 ms`)
    const percent = await repeatedCuts(server, cutSeconds)
    progress(`${title}: held requests`)
    const leavers = await permitsLost(server)
    const sum = (/** @type {'over' | 'degraded'} */ field) => starts.reduce((total, start) => total + start[field], 0)
    const stalls = starts.filter(({ stalled }) => !Number.isNaN(stalled))
    const stalled = stalls.reduce((total, start) => total + start.stalled, 0)
    const mostDegraded = Math.max(...once.map(({ degraded }) => degraded))
    const exactAfterMs = median(once.map(({ exactAfterMs }) => exactAfterMs))
    return {
      title,
      note: `Redis is healthy throughout, and all options have their defaults. Each run has ${runs} cold starts of ${processes} processes of each kind, next to ${busyLoops} busy loops. A cold start starts all processes concurrently, with one limit of ${capacity} that each of them could exhaust alone. Library processes then make ${inFlight} decisions and block their event loop for ${stallMs} ms.`,
      tables: [],
      figures: [
        {
          title: 'Cold start and event-loop stall',
          head: [
            'started by',
            'starts over the limit',
            'allowed beyond the limit, worst start',
            'degraded decisions',
            `degraded after a stall of ${stallMs} ms`,
          ],
          lines: starts.map(({ name, runsOver, over, degraded, stalled }) => [
            name,
            figure(runsOver),
            figure(over),
            name === 'fluxgate gateway' ? '' : figure(degraded),
            Number.isNaN(stalled) ? '' : figure(stalled),
          ]),
        },
        {
          title: `Lost connections, ${callers} callers`,
          head: ['', 'degraded', 'ms until the last degraded decision'],
          lines: [
            [`one, median of ${cuts}`, figure(median(once.map(({ degraded }) => degraded))), figure(exactAfterMs, 1)],
            [
              `one, worst of ${cuts}`,
              figure(mostDegraded),
              figure(Math.max(...once.map((cut) => cut.exactAfterMs)), 1),
            ],
            [`every 200 ms for ${cutSeconds} s, percent`, figure(percent, 2), ''],
          ],
        },
        {
          title: `Permits lost when ${held} held requests leave, oldest first`,
          head: ['', 'permits lost'],
          lines: leavers.map(({ name, lost }) => [name, figure(lost)]),
        },
      ],
      ratios: [
        { what: 'allowed beyond the limit after a cold start', measured: sum('over'), atMost: 0, always: true },
        { what: 'degraded decisions after a cold start', measured: sum('degraded'), atMost: 0, always: true },
        { what: `degraded decisions after a stall of ${stallMs} ms`, measured: stalled, atMost: 0, always: true },
        {
          what: `degraded decisions after one lost connection, ${callers} callers`,
          measured: mostDegraded,
          atMost: callers,
          always: true,
        },
        { what: 'ms until decisions are exact after one lost connection', measured: exactAfterMs, atMost: 50 },
        { what: 'percent degraded with a lost connection every 200 ms', measured: percent, atMost: 5 },
        {
          what: `permits lost of ${held} held requests that leave`,
          measured: Math.max(...leavers.map(({ lost }) => lost)),
          atMost: 0,
          always: true,
        },
      ],
    }
  } finally {
    await server.stop()
  }
}
