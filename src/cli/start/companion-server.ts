import type { Config } from '../../config/config.js'
import type { RuleStore } from '../../core/contracts/rule-store.js'
import type { FluxGate } from '../../gate/flux-gate.js'
import type { FluxGateServer } from '../../program/create-server.js'
import { openLog } from '../../program/log.js'
import type { ServedParts } from '../../program/server.js'
import { createTelemetry, type Telemetry } from '../../program/telemetry.js'
import { type ListenAddress, type ListenProblem, listenOn } from './listen.js'
import { listenForProxies, type RateLimitListener } from './rate-limit.js'

export interface CompanionServer {
  /** The full API, or only metrics and health. */
  readonly serves: 'API' | 'METRICS'
  readonly observer: Telemetry['observer']
  /** Resolves with the URL, or with the reason why the port is unavailable. Rejects if the configuration forbids the address. */
  start(gate: FluxGate, rules: RuleStore | undefined): Promise<CompanionUrls | ListenProblem>
  close(): Promise<void>
}

interface CompanionUrls {
  readonly url: string
  /** URL of Envoy's rate limit service; null if none runs. */
  readonly grpc: string | null
}

export interface CompanionOptions {
  readonly serves: CompanionServer['serves']
  readonly serverOf: (config: Config, parts: ServedParts) => FluxGateServer
  readonly address: ListenAddress
  readonly drainTimeout: number
  /** Set if the companion serves Envoy too. */
  readonly grpc?: { readonly grpcPort?: number | undefined }
}

/** A server that shares the gate of the gateway, so that both use the same buckets and statistics. */
export function companionServer(
  config: Config,
  { serves, serverOf, address, drainTimeout, grpc }: CompanionOptions,
): CompanionServer {
  const log = openLog(config)
  const telemetry = createTelemetry(config, log)
  let closeServer: (() => Promise<void>) | undefined
  return {
    serves,
    observer: telemetry.observer,
    async start(gate, rules) {
      telemetry.follow(gate)
      const server = serverOf(config, { gate, rules, telemetry, log })
      let proxies: RateLimitListener | undefined
      closeServer = async () => void (await Promise.all([server.close(drainTimeout), proxies?.close()]))
      const api = await listenOn(server, address)
      if ('problem' in api || grpc === undefined) return 'problem' in api ? api : { url: api.url, grpc: null }
      proxies = await listenForProxies(config, { gate, log }, grpc)
      const { listening } = proxies
      return 'problem' in listening ? listening : { url: api.url, grpc: listening.url }
    },
    async close() {
      await closeServer?.()
      await telemetry.close()
    },
  }
}
