// @ts-check
/** Decisions over HTTP, compared with other rate-limiting services. */
import { cpuTimeUs, startLoad } from '../http/processes.mjs'
import { connections } from '../http/rounds.mjs'
import { Broken } from '../measure.mjs'
import { figure, spreadFigure } from '../results/report.mjs'
import { fluxGateServe, others, startOthers } from '../services/contenders.mjs'
import { timesAs, typical } from '../turns.mjs'

const title = 'Services'
const ours = 'fluxgate serve, Redis'
const oursInMemory = 'fluxgate serve, memory'
const envoy = /** @type {string} */ (others[0]?.name)

/** @typedef {{ perSecond: number, perCpuSecond: number, p50Ms: number, p99Ms: number }} Turn */

/** @type {import('../results/report.mjs').Section} */
export async function overServices(effort) {
  const { http, install, progress } = effort
  const servers = [await fluxGateServe(ours, true), await fluxGateServe(oursInMemory, false)]
  const load = await startLoad()
  try {
    const { running, skipped } = await startOthers(install, progress)
    servers.push(...running)
    for (const server of servers) await checkAnswer(server)
    const rows = servers.map(({ name }) => ({ name, turns: /** @type {Turn[]} */ ([]) }))
    for (let round = -http.warmUps; round < http.rounds; round++) {
      progress(`${title}: ${round < 0 ? 'warming up' : `round ${round + 1} of ${http.rounds}`}`)
      for (let turn = 0; turn < servers.length; turn++) {
        const index = (turn + round + http.warmUps) % servers.length
        const took = await takeTurn(/** @type {Running} */ (servers[index]), load, http.seconds)
        if (round >= 0) rows[index]?.turns.push(took)
      }
    }
    const isEnvoyThere = rows.some(({ name }) => name === envoy)
    const baseline = isEnvoyThere ? envoy : ours
    return {
      title,
      note: [
        `One decision per request, ${connections} keep-alive connections from one load generator, 1,000 keys, one limit per key that is never reached. CPU seconds are those of the service and of its Redis. FluxGate and envoyproxy/ratelimit share their counters in Redis. FluxGate in memory, gubernator with one node, nginx and HAProxy count in their own memory; nginx and HAProxy run with one thread and answer with a constant.`,
        ...skipped,
      ].join(' '),
      tables: [],
      figures: [
        {
          title: 'Decisions over HTTP',
          head: [
            'contender',
            'decisions/s',
            'per CPU second',
            'p50 ms',
            'p99 ms',
            `per CPU second, relative to ${baseline}`,
          ],
          lines: rows.map((row) => [
            row.name,
            figure(typical(row, 'perSecond')),
            figure(typical(row, 'perCpuSecond')),
            figure(typical(row, 'p50Ms'), 2),
            figure(typical(row, 'p99Ms'), 2),
            spreadFigure(timesAs(rows, 'perCpuSecond', row.name, baseline)),
          ]),
        },
      ],
      ratios: isEnvoyThere
        ? [
            {
              what: `decisions per CPU second, ${ours} vs ${envoy}`,
              measured: timesAs(rows, 'perCpuSecond', ours, envoy),
              atLeast: 2,
            },
          ]
        : [],
    }
  } finally {
    load.stop()
    for (const { stop } of servers) await stop()
  }
}

/** @typedef {import('../services/contenders.mjs').Running} Running */

/** Checks that a service decides: a service with an incorrect configuration answers quickly and would win. */
async function checkAnswer(/** @type {Running} */ { name, port, requests: [request = ''], grants }) {
  const [, method = '', path = ''] = /^(\S+) (\S+)/.exec(request) ?? []
  const body = request.slice(request.indexOf('\r\n\r\n') + 4)
  const headers = { 'Content-Type': 'application/json', 'X-Api-Key': 'account-0' }
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers, body: body === '' ? null : body })
  const text = await response.text()
  if (response.status !== 200 || !text.replaceAll(/\s/g, '').includes(grants))
    throw new Broken(`${name} did not allow a request: ${response.status} ${text.slice(0, 300)}`)
}

/** @type {(server: Running, load: Awaited<ReturnType<typeof startLoad>>, seconds: number) => Promise<Turn>} */
async function takeTurn({ name, port, pids, requests }, load, seconds) {
  const usedUs = () => pids.reduce((sum, pid) => sum + cpuTimeUs(pid), 0)
  const before = usedUs()
  const { perSecond, others, p50Ms, p99Ms } = await load.ask({ port, connections, seconds, requests })
  if (others > 0) throw new Broken(`${name} answered ${others} requests with a status other than 200.`)
  // At least one tick of the kernel's clock, which is all that a very short turn may use.
  const cpuSeconds = Math.max(usedUs() - before, 10_000) / 1e6
  return { perSecond, perCpuSecond: (perSecond * seconds) / cpuSeconds, p50Ms, p99Ms }
}
