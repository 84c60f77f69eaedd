import { given } from '../core/given.js'
import type { RuleStore } from '../core/rule-store.js'
import type { Logger } from '../telemetry/logger.js'
import type { Config } from './config.js'
import { createServer, type FluxGateServer } from './create-server.js'
import type { FluxGate } from './flux-gate.js'
import { isWorker } from './gateway-workers.js'
import { infoOf } from './run-info.js'
import type { Telemetry } from './run-telemetry.js'
import { metricsOfAll } from './worker-metrics.js'

export interface ServedParts {
  readonly gate: FluxGate
  readonly rules: RuleStore | undefined
  readonly telemetry: Telemetry
  readonly log: Logger
}

/** The server that a configuration asks for, ready to listen. */
export function serverOf(config: Config, { gate, rules, telemetry, log }: ServedParts): FluxGateServer {
  const { adminToken, checkToken, tlsCert, tlsKey, revealKeys } = config.server
  return createServer({
    gate,
    statistics: telemetry.statistics,
    metrics: isWorker() ? metricsOfAll(telemetry.metrics) : telemetry.metrics,
    info: infoOf(config, gate),
    logger: log,
    revealKeys,
    ...given({ rules, adminToken, checkToken }),
    ...(tlsCert !== undefined && tlsKey !== undefined && { tls: { cert: tlsCert, key: tlsKey } }),
  })
}
