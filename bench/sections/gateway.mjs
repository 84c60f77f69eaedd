// @ts-check
/** The gateway beside other proxies that limit, in front of one service. */
import { startNginx } from '../http/nginx.mjs'
import { startProgram } from '../http/processes.mjs'
import { connections, requestFigures, serversInRounds } from '../http/rounds.mjs'
import { timesAs } from '../turns.mjs'

const title = 'Gateway'
const ours = 'FluxGate'
const fastify = '@fastify/http-proxy, @fastify/rate-limit'
const nginxName = 'nginx, limit_req'

/** @type {import('../report.mjs').Section} */
export async function overGateways(effort) {
  const upstream = await startProgram('upstream', 'upstream.mjs')
  const port = String(upstream.port)
  const servers = [
    await startProgram(ours, 'proxies/fluxgate.mjs', port),
    await startProgram(fastify, 'proxies/fastify.mjs', port),
    await startProgram('http-proxy, express-rate-limit', 'proxies/http-proxy.mjs', port),
    await startProgram('node:http alone, without limits', 'proxies/node-http.mjs', port),
  ]
  const nginx = await startNginx(nginxName, upstream.port)
  if (nginx !== undefined) servers.push(nginx)
  try {
    const rows = await serversInRounds(title, servers, effort)
    const beside =
      nginx === undefined
        ? 'nginx is not installed here, and so it is not measured.'
        : `FluxGate answers ${timesAs(rows, 'perSecond', ours, nginxName).toFixed(2)} times as many requests as nginx.`
    return {
      title,
      note: `One process (nginx: one worker) between the one that asks, over ${connections} connections, and a service that answers with a small JSON document; one limit per address that nobody reaches. ${beside}`,
      tables: [],
      figures: [requestFigures('One route, one limit', rows, fastify)],
      ratios: [{ what: `requests/s : ${fastify}`, measured: timesAs(rows, 'perSecond', ours, fastify), atLeast: 1.3 }],
    }
  } finally {
    for (const { stop } of [...servers, upstream]) stop()
  }
}
