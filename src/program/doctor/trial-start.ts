/**
 * Creates the server and the gateway of a configuration as `start`, `serve` and `gateway` do, without listening and with buckets in
 * memory. Finds everything that they reject or warn of, except for ports and connections, which other checks try.
 */
import type { Config } from '../../config/config.js'
import type { RuleSetProvider } from '../../core/contracts/rule-set-provider.js'
import type { RuleSet } from '../../core/rule.js'
import { gateOptions } from '../../gate/configured-options.js'
import { openGate } from '../../gate/create-flux-gate.js'
import { type Origin, parseOrigin } from '../../gateway/upstream/origin.js'
import { createServer } from '../create-server.js'
import { demoRoutes, withDemoIdentities } from '../demo/upstream.js'
import { createGateway } from '../gateway/create-gateway.js'

/** Rejects with the error of the command. Returns the warnings. */
type Trial = (config: Config, ruleSets: readonly RuleSet[]) => Promise<readonly string[]>

export const trialServer: Trial = async (config, ruleSets) => {
  const { warnings, logger } = collectWarnings()
  const gate = await openGate({ ...gateOptions(inMemory(config)), rules: providerOf(config, ruleSets), logger })
  try {
    const { adminToken, checkToken } = config.server
    createServer({
      gate,
      ...(adminToken !== undefined && { adminToken }),
      ...(checkToken !== undefined && { checkToken }),
    })
    return warnings
  } finally {
    await gate.close()
  }
}

export const trialGateway: Trial = async (config, ruleSets) => {
  const { warnings, logger } = collectWarnings()
  const isDemo = config.gateway.routes === undefined
  const tried = inMemory(isDemo ? withDemoIdentities(config) : config)
  const routes = config.gateway.routes ?? demoRoutes(ruleSets, parseOrigin('http://127.0.0.1:1') as Origin)
  const running = await createGateway(tried, { rules: providerOf(config, ruleSets), routes, logger })
  await running.close()
  return warnings
}

/** TLS files are read by a check of their own. */
const inMemory = (config: Config): Config => ({
  ...config,
  gateway: { ...config.gateway, tlsCert: undefined, tlsKey: undefined },
  store: { ...config.store, type: 'memory' },
  reload: { ...config.reload, strategy: 'NONE' },
})

/** The name of the rules is that of the configured store, for messages. */
const providerOf = ({ rules }: Config, ruleSets: readonly RuleSet[]): RuleSetProvider => ({
  source: rules.type === 'file' ? rules.path : `rules in ${rules.type}`,
  load: async () => ruleSets,
})

function collectWarnings() {
  const warnings: string[] = []
  return { warnings, logger: { warn: (message: string) => void warnings.push(message) } }
}
