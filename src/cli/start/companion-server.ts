import type { Config } from '../../config/config.js'
import type { RuleStore } from '../../core/contracts/rule-store.js'
import type { FluxGate } from '../../gate/flux-gate.js'
import type { FluxGateServer } from '../../program/create-server.js'
import { openLog } from '../../program/log.js'
import type { ServedParts } from '../../program/server.js'
import { createTelemetry, type Telemetry } from '../../program/telemetry.js'
import { type ApiListener, type ApiListenerOptions, type ApiUrls, apiListener } from './api-listener.js'
import type { ListenProblem } from './listen.js'

export interface CompanionServer {
  /** The full API, or only metrics and health. */
  readonly serves: 'API' | 'METRICS'
  readonly observer: Telemetry['observer']
  /** Like `start` of an `ApiListener`. */
  start(gate: FluxGate, rules: RuleStore | undefined): Promise<ApiUrls | ListenProblem>
  close(): Promise<void>
}

export interface CompanionOptions extends ApiListenerOptions {
  readonly serves: CompanionServer['serves']
  readonly serverOf: (config: Config, parts: ServedParts) => FluxGateServer
}

/** A server that shares the gate of the gateway, so that both use the same buckets and statistics. */
export function companionServer(config: Config, { serves, serverOf, ...options }: CompanionOptions): CompanionServer {
  const log = openLog(config)
  const telemetry = createTelemetry(config, log)
  let listener: ApiListener | undefined
  return {
    serves,
    observer: telemetry.observer,
    async start(gate, rules) {
      telemetry.follow(gate)
      listener = apiListener(config, serverOf(config, { gate, rules, telemetry, log }), { gate, log }, options)
      return listener.start()
    },
    async close() {
      await listener?.close()
      await telemetry.close()
    },
  }
}
