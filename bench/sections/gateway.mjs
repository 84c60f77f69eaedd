// @ts-check
/** The gateway compared with other rate-limiting proxies, in front of one upstream. */
import { startProgram } from '../http/processes.mjs'
import { connections, requestFigures, serversInRounds } from '../http/rounds.mjs'
import { program } from '../services/install.mjs'
import { startNginxProxy } from '../services/nginx.mjs'
import { timesAs } from '../turns.mjs'

const title = 'Gateway'
const ours = 'FluxGate'
const fastify = '@fastify/http-proxy, @fastify/rate-limit'
const nginxName = 'nginx, limit_req'

/** @type {import('../results/report.mjs').Section} */
export async function overGateways(effort) {
  const upstream = await startProgram('upstream', 'upstream.mjs')
  const port = String(upstream.port)
  const servers = [
    await startProgram(ours, 'proxies/fluxgate.mjs', port),
    await startProgram(fastify, 'proxies/fastify.mjs', port),
    await startProgram('http-proxy, express-rate-limit', 'proxies/http-proxy.mjs', port),
    await startProgram('node:http, no limiter', 'proxies/node-http.mjs', port),
  ]
  const nginx = await program('nginx', effort.install)
  if ('file' in nginx) servers.push({ name: nginxName, ...(await startNginxProxy(nginx.file, upstream.port)) })
  try {
    const rows = await serversInRounds(title, servers, effort)
    const comparison =
      'missing' in nginx
        ? `nginx was not measured: ${nginx.missing}.`
        : 'nginx is a native program and shows how far JavaScript is from it.'
    return {
      title,
      note: `One proxy process (nginx: one process, one thread) between a load generator with ${connections} connections and an upstream with a small JSON response; one limit per address that is never reached. ${comparison}`,
      tables: [],
      figures: [requestFigures('One route, one limit', rows, fastify)],
      ratios: [{ what: `requests/s vs ${fastify}`, measured: timesAs(rows, 'perSecond', ours, fastify), atLeast: 1.8 }],
    }
  } finally {
    for (const { stop } of [...servers, upstream]) stop()
  }
}
