import type { Config } from '../config/config.js'
import type { RuleStore } from '../core/contracts/rule-store.js'
import { omitUndefined } from '../core/omit-undefined.js'
import type { FluxGate } from '../gate/flux-gate.js'
import { mergeOptionalReports } from '../telemetry/candidates/report.js'
import type { Logger } from '../telemetry/logger.js'
import { mergeMetrics } from '../telemetry/merge-metrics.js'
import type { SeriesQuery } from '../telemetry/series/decision-series.js'
import { seriesReport } from '../telemetry/series/report.js'
import { createMetricsServer, createServer, type FluxGateServer, type ServerOptions } from './create-server.js'
import { mergeHealth } from './merge-health.js'
import { packageVersion } from './package-version.js'
import type { Telemetry } from './telemetry.js'
import { collectFromWorkers } from './workers/collect.js'
import { isWorker } from './workers/workers.js'

export interface ServedParts {
  readonly gate: FluxGate
  readonly rules: RuleStore | undefined
  readonly telemetry: Telemetry
  readonly log: Logger
}

/** Creates the API server of a configuration. */
export const serverOf = (config: Config, parts: ServedParts): FluxGateServer => createServer(optionsOf(config, parts))

/** Creates a server with metrics and health only. */
export const metricsServerOf = (config: Config, parts: ServedParts): FluxGateServer =>
  createMetricsServer(optionsOf(config, parts))

function optionsOf(config: Config, { gate, rules, telemetry, log }: ServedParts): ServerOptions {
  const { adminToken, checkToken, tlsCert, tlsKey, revealKeys } = config.server
  return {
    gate,
    statistics: telemetry.statistics,
    onSample: telemetry.onSample,
    ...(isWorker()
      ? {
          metrics: collectFromWorkers('metrics', telemetry.metrics, mergeMetrics),
          health: collectFromWorkers('health', () => gate.health(), mergeHealth),
          series: collectFromWorkers('series', telemetry.series, seriesReport),
          ...(telemetry.sharedReport === undefined && {
            candidateReport: collectFromWorkers('candidates', telemetry.candidateReport, mergeOptionalReports),
          }),
        }
      : {
          metrics: telemetry.metrics,
          series: async (query: SeriesQuery) => seriesReport([await telemetry.series(query)]),
        }),
    ...(telemetry.sharedReport !== undefined && { candidateReport: telemetry.sharedReport }),
    info: infoOf(config, gate),
    logger: log,
    revealKeys,
    ...omitUndefined({ rules, adminToken, checkToken }),
    ...(tlsCert !== undefined && tlsKey !== undefined && { tls: { cert: tlsCert, key: tlsKey } }),
  }
}

/** The content of /info: version, uptime and store types. Contains no addresses and no credentials. */
function infoOf({ store, rules }: Config, gate: FluxGate): () => Promise<object> {
  const version = packageVersion()
  const startedAt = Date.now()
  return async () => ({
    name: 'fluxgate',
    version,
    node: process.version,
    startedAt,
    uptimeSeconds: Math.floor((Date.now() - startedAt) / 1_000),
    store: { type: store.type, ...(store.type === 'redis' && { topology: topologyOf(store) }) },
    rules: {
      type: rules.type,
      reload: (await gate.health()).rules.reload,
      ruleSets: gate.ruleSets.length,
    },
  })
}

function topologyOf({ clusterNodes, sentinels }: Config['store']): 'cluster' | 'sentinel' | 'standalone' {
  if (clusterNodes !== undefined) return 'cluster'
  return sentinels === undefined ? 'standalone' : 'sentinel'
}
