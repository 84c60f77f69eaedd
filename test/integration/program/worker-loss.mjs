// @ts-check
/** Two workers on one port. On request, one of them exits, and the primary sends to it before it has noticed. */
import cluster from 'node:cluster'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { collectFromWorkers } from '../../../dist/program/workers/collect.js'
import { followPrimary, startWorkers } from '../../../dist/program/workers/workers.js'

if (cluster.isPrimary) {
  const workers = startWorkers(2, {
    onMessage() {},
    onReady: () => process.send?.('ready'),
    onStartFailure() {},
    onLoss: () => process.send?.('lost'),
    onStaleRules() {},
  })
  process.on('message', () => {
    const pid = Object.values(cluster.workers ?? {})[0]?.process.pid ?? 0
    process.kill(pid, 'SIGKILL')
    // The event loop is blocked: the worker is dead, and the primary has not noticed yet.
    while (!/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8')));
    for (let i = 0; i < 3; i++) workers.reload()
    setImmediate(() => process.send?.('survived'))
  })
} else {
  const { id } = /** @type {import('node:cluster').Worker} */ (cluster.worker)
  const failing = collectFromWorkers(
    'failing',
    async () => {
      if (id === 2) throw new Error('no value')
      return String(id)
    },
    (all) => [...all].sort().join(),
  )
  const server = createServer(async (_, response) => {
    response.setHeader('Connection', 'close')
    response.end(JSON.stringify({ worker: id, ids: await failing().catch(() => 'none') }))
  }).listen(Number(process.argv[2]), '127.0.0.1')
  followPrimary(
    async () => void server.close(),
    () => {},
  )
}
