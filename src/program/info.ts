import type { Config } from '../config/config.js'
import type { FluxGate } from '../gate/flux-gate.js'
import { packageVersion } from './package-version.js'

/** The content of /info: version, uptime and store types. Contains no addresses and no credentials. */
export function infoOf({ store, rules }: Config, gate: FluxGate): () => Promise<object> {
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
