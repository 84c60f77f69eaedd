import type { Config } from '../../config/config.js'
import type { FluxGateServer } from '../../program/create-server.js'
import { openLog } from '../../program/log.js'
import type { ServedParts } from '../../program/server.js'
import { openTelemetry } from '../../program/telemetry.js'
import type { CompanionServer } from './gateway.js'
import { type ListenAddress, listenOn } from './server.js'

export interface CompanionOptions {
  readonly serves: CompanionServer['serves']
  readonly serverOf: (config: Config, parts: ServedParts) => FluxGateServer
  readonly place: ListenAddress
  readonly drainTimeout: number
}

/** A server that shares the gate of the gateway, so that both use the same buckets and statistics. */
export function companionServer(
  config: Config,
  { serves, serverOf, place, drainTimeout }: CompanionOptions,
): CompanionServer {
  const log = openLog(config)
  const telemetry = openTelemetry(config, log)
  let closeServer: (() => Promise<void>) | undefined
  return {
    serves,
    observer: telemetry.recorder,
    start(gate, rules) {
      telemetry.follow(gate)
      const server = serverOf(config, { gate, rules, telemetry, log })
      closeServer = () => server.close(drainTimeout)
      return listenOn(server, place)
    },
    async close() {
      await closeServer?.()
      await telemetry.close()
    },
  }
}
