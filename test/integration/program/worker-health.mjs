// @ts-check
/** Three workers on one port; each responds with the health of all. Only the store of the second is down. */
import cluster from 'node:cluster'
import { createServer } from 'node:http'
import { mergeHealth } from '../../../dist/program/merge-health.js'
import { collectFromWorkers } from '../../../dist/program/workers/collect.js'
import { startWorkers } from '../../../dist/program/workers/workers.js'

if (cluster.isPrimary) {
  startWorkers(3, {
    onMessage() {},
    onReady: () => process.send?.('ready'),
    onStartFailure() {},
    onLoss() {},
    onStaleRules() {},
  })
} else {
  const { id } = /** @type {import('node:cluster').Worker} */ (cluster.worker)
  const isDown = id === 2
  /** @type {() => Promise<import('../../../dist/server/server-gate.js').ServerHealth>} */
  const own = async () => ({
    status: isDown ? 'DEGRADED' : 'UP',
    store: { status: isDown ? 'DOWN' : 'UP', sinceAt: id, error: isDown ? 'no connection' : null },
    rules: { status: 'UP', sinceAt: null, error: null },
  })
  const health = collectFromWorkers('health', own, mergeHealth)
  const ids = collectFromWorkers(
    'ids',
    async () => String(id),
    (all) => [...all].sort().join(),
  )
  createServer(async (_, response) => {
    response.setHeader('Connection', 'close')
    response.end(JSON.stringify({ worker: id, ids: await ids(), health: await health() }))
  }).listen(Number(process.argv[2]), '127.0.0.1')
}
