import type { IncomingMessage, Server } from 'node:http'
import type { Config } from '../../config/config.js'
import type { RuleSetProvider } from '../../core/contracts/rule-set-provider.js'
import { gateOptions } from '../../gate/configured-options.js'
import { type GateHooks, openGate } from '../../gate/create-flux-gate.js'
import type { FluxGate } from '../../gate/flux-gate.js'
import type { GivenObserver } from '../../gate/reporting/open-observer.js'
import type { AccessLog } from '../../gateway/access-log.js'
import { Gateway } from '../../gateway/gateway.js'
import { untrustedHeaders } from '../../gateway/headers/untrusted-headers.js'
import type { Route } from '../../gateway/routes/route.js'
import type { RouteDefinition } from '../../gateway/routes/route-schema.js'
import { compileClientIp } from '../../http/client-ip/client-ip.js'
import { compileTrustedProxies } from '../../http/client-ip/trusted-proxies.js'
import { Guard } from '../../http/guard.js'
import { watchIdentitySources } from '../../http/identity-sources.js'
import { configInvalid } from '../../validation/config-invalid.js'
import { noIssues } from '../../validation/issues.js'
import type { WarningLogger } from '../../validation/warnings.js'
import { configuredRules } from '../rules.js'
import { readTlsPair, type TlsPair } from '../tls-pair.js'
import { GatewayRules } from './rules.js'

/** The observer is notified of every decision. */
export interface GatewayChoices extends GivenObserver {
  /** The rules; the caller closes them. Default: the rule store of the configuration, if it exists. */
  readonly rules?: RuleSetProvider | undefined
  /** Default: the routes of the configuration. */
  readonly routes?: readonly RouteDefinition[]
  readonly log?: AccessLog | undefined
  /** Receives warnings about likely misconfigurations. Default: process warnings. */
  readonly logger?: WarningLogger | undefined
  /** Called if the bucket store could not be reached in time. */
  readonly onUnreachable?: GateHooks['onUnreachable']
}

export interface RunningGateway {
  readonly gate: FluxGate
  readonly server: Server
  /** IDs of the current routes that have no limit. */
  readonly unlimitedRoutes: readonly string[]
  /** True while rules are reloaded because the routes changed. */
  readonly isRerouting: boolean
  /** Reloads certificate and key for new connections. Throws and keeps the current ones if they are invalid. */
  renewCertificate(): void
  /** Replaces the routes. Rejects and keeps the current ones if their rules are invalid. */
  setRoutes(routes: readonly RouteDefinition[]): Promise<void>
  /** Waits for requests in flight, at most for the configured drain timeout. */
  close(): Promise<void>
}

/** Creates a gateway from the configuration. The caller makes `server` listen. */
export async function createGateway(config: Config, choices: GatewayChoices = {}): Promise<RunningGateway> {
  const { ratelimit } = config
  const { routes: first = config.gateway.routes ?? [], log } = choices
  const tls = certificateOf(config)
  const own = 'rules' in choices ? undefined : configuredRules(config)
  const rules = new GatewayRules(choices.rules ?? own, ratelimit, first)
  const gate = await openChecked(config, rules, first, choices).catch(async (error: unknown) => {
    await own?.close()
    throw error
  })
  let routes = first
  let isRerouting = false
  const guard = new Guard<IncomingMessage>(gate, ratelimit)
  const opened = (): Route[] => openRoutes(routes, rules)
  const stopWarning = watchIdentitySources(gate, ratelimit, () => true)
  const gateway = new Gateway({
    routes: opened(),
    guard,
    clientIpOf: compileClientIp(ratelimit),
    isTrustedProxy: compileTrustedProxies(ratelimit.trustedProxies),
    isUntrustedHeader: untrustedHeaders(ratelimit.clientIpHeader, [ratelimit.userIdHeader, ratelimit.apiKeyHeader]),
    ...limitsOf(config),
    tls,
    log,
  })
  return {
    gate,
    server: gateway.server,
    get unlimitedRoutes() {
      return opened().flatMap(({ id, limits }) => (limits.length === 0 ? [id] : []))
    },
    get isRerouting() {
      return isRerouting
    },
    renewCertificate() {
      const renewed = certificateOf(config)
      if (renewed !== undefined) gateway.setCertificate(renewed)
    },
    async setRoutes(next) {
      const needsReload = rules.take(next)
      isRerouting = true
      try {
        checkRules(rules, next, config)
        if (needsReload) await gate.reload()
      } catch (error) {
        rules.take(routes)
        throw error
      } finally {
        isRerouting = false
      }
      routes = next
      gateway.setRoutes(opened())
    },
    async close() {
      stopWarning()
      await gateway.close(config.gateway.drainTimeout, async () => guard.close())
      await gate.close()
      await own?.close()
    },
  }
}

/** Opens a gate and checks that its rules contain every rule set that the routes name. */
async function openChecked(
  config: Config,
  rules: GatewayRules,
  routes: readonly RouteDefinition[],
  choices: GatewayChoices,
): Promise<FluxGate> {
  const { logger } = choices
  const gate = await openGate({ ...gateOptions(config), rules, ...(logger && { logger }) }, choices)
  try {
    checkRules(rules, routes, config)
    const problem = config.gateway.routes === undefined ? rules.missingDefault(routes) : undefined
    if (problem !== undefined)
      gate.warnings.warn('FLUXGATE_RULE_SET_UNKNOWN', `ratelimit.defaultRuleSetId: ${problem}.`)
    return gate
  } catch (error) {
    await gate.close()
    throw error
  }
}

function openRoutes(routes: readonly RouteDefinition[], rules: GatewayRules): Route[] {
  const isFiltered = rules.isFiltered(routes)
  return routes.map((route) => ({ ...route, limits: rules.limitsOf(route, isFiltered) }))
}

function checkRules(rules: GatewayRules, routes: readonly RouteDefinition[], { file, locate, gateway }: Config): void {
  const issues = noIssues()
  rules.check(routes, issues)
  // The routes of the example are not in the configuration, so a missing default is only a warning.
  const problem = gateway.routes === undefined ? undefined : rules.missingDefault(routes)
  if (problem !== undefined) issues.add('ratelimit.defaultRuleSetId', problem)
  if (issues.count > 0) throw configInvalid(file ?? 'Configuration', locate(issues.kept))
}

function certificateOf({ gateway: { tlsCert: cert, tlsKey: key } }: Config): TlsPair | undefined {
  return cert === undefined || key === undefined ? undefined : readTlsPair('gateway.tls', { cert, key })
}

function limitsOf({ gateway }: Config) {
  return {
    upstream: {
      connectTimeoutMs: gateway.connectTimeout,
      responseTimeoutMs: gateway.responseTimeout,
      idleTimeoutMs: gateway.idleTimeout,
      keepAliveMs: gateway.keepAlive,
      maxConnections: gateway.maxConnections,
      clientShare: gateway.clientShare,
      minUploadRate: gateway.minUploadRate,
      uploadGraceMs: gateway.uploadGracePeriod,
    },
    requests: { maxUrlLength: gateway.maxUrlLength, maxHeaderSize: gateway.maxHeaderSize },
    clientKeepAliveMs: gateway.clientKeepAlive,
  }
}
