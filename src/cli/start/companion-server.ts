import type { Config } from '../../config/config.js'
import type { RuleStore } from '../../core/contracts/rule-store.js'
import type { FluxGate } from '../../gate/flux-gate.js'
import type { FluxGateServer } from '../../program/create-server.js'
import { openLog } from '../../program/log.js'
import type { ServedParts } from '../../program/server.js'
import { createTelemetry, type Telemetry } from '../../program/telemetry.js'
import { type ListenAddress, type Listening, listenOn } from './listen.js'

export interface CompanionServer {
  /** The full API, or only metrics and health. */
  readonly serves: 'API' | 'METRICS'
  readonly observer: Telemetry['observer']
  /** Resolves with the URL, or with the reason why the port is unavailable. Rejects if the configuration forbids the address. */
  start(gate: FluxGate, rules: RuleStore | undefined): Promise<Listening>
  close(): Promise<void>
}

export interface CompanionOptions {
  readonly serves: CompanionServer['serves']
  readonly serverOf: (config: Config, parts: ServedParts) => FluxGateServer
  readonly address: ListenAddress
  readonly drainTimeout: number
}

/** A server that shares the gate of the gateway, so that both use the same buckets and statistics. */
export function companionServer(
  config: Config,
  { serves, serverOf, address, drainTimeout }: CompanionOptions,
): CompanionServer {
  const log = openLog(config)
  const telemetry = createTelemetry(config, log)
  let closeServer: (() => Promise<void>) | undefined
  return {
    serves,
    observer: telemetry.observer,
    start(gate, rules) {
      telemetry.follow(gate)
      const server = serverOf(config, { gate, rules, telemetry, log })
      closeServer = () => server.close(drainTimeout)
      return listenOn(server, address)
    },
    async close() {
      await closeServer?.()
      await telemetry.close()
    },
  }
}
