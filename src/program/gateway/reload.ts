import { readFile } from 'node:fs/promises'
import type { Config } from '../../config/config.js'
import { FluxGateError, messageOf } from '../../core/errors.js'
import type { RouteDefinition } from '../../gateway/routes/route-schema.js'
import { digestOf } from '../../rules/document/rules-file.js'
import { watchFile } from '../../rules/document/watch-file.js'
import type { RunningGateway } from './create-gateway.js'

export interface RoutesReloaded {
  readonly routeCount: number
  /** True if other settings changed too. They take effect after a restart. */
  readonly needsRestart: boolean
  /** With an error, the previous routes stay in effect. */
  readonly error: FluxGateError | null
}

interface Watched {
  readonly config: Config
  readonly running: RunningGateway
  load(): Promise<Config>
  routesOf(config: Config): readonly RouteDefinition[]
  onReload(result: RoutesReloaded): void
}

export interface RouteWatch {
  /** Reloads the routes now. */
  reload(): void
  stop(): void
}

/** Reloads the routes whenever the configuration file changes. */
export function watchRoutes({ config, running, load, routesOf, onReload }: Watched): RouteWatch {
  const { file } = config
  if (file === undefined) return { reload() {}, stop() {} }
  let routes = routesOf(config)
  let turn = Promise.resolve()

  const fail = (error: unknown): void => {
    const failure =
      error instanceof FluxGateError ? error : new FluxGateError('FLUXGATE_CONFIG_UNREADABLE', messageOf(error))
    onReload({ routeCount: routes.length, needsRestart: false, error: failure })
  }
  const reload = async (): Promise<void> => {
    try {
      const next = await load()
      const nextRoutes = routesOf(next)
      await running.setRoutes(nextRoutes)
      routes = nextRoutes
      onReload({ routeCount: routes.length, needsRestart: settingsOf(next) !== settingsOf(config), error: null })
    } catch (error) {
      fail(error)
    }
  }
  const digest = async (): Promise<string> => digestOf(await readFile(file))
  const inTurn = (): void => {
    turn = turn.then(reload)
  }
  const stop = watchFile({ file, shown: file, digest, known: config.fileDigest, onChange: inTurn, onError: fail })
  return { reload: inTurn, stop }
}

/** All settings except the routes, for comparison. */
function settingsOf({ gateway: { routes: _, ...gateway }, fileDigest: __, ...config }: Config): string {
  return JSON.stringify({ ...config, gateway })
}
