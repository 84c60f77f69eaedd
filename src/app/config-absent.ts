/**
 * What a fluxgate.yaml may say in other versions and this one does not have. It is refused rather than ignored: a limit
 * that only appears to be in force is worse than a program that does not start.
 */
import { type Environment, variable } from './config-placeholders.js'

const fileOnly = 'rules are read from one file: rules { type: file, path }'
const everyRequest = 'every request to `fluxgate start` is limited by the rules that its path matches'
const connectionAddress = 'the client address is that of the connection'

/** By place, with what this version has instead. */
export const absentSettings: Readonly<Record<string, string>> = {
  server: '`fluxgate start` has one endpoint: gateway { host, port }',
  'gateway.routes': '`fluxgate start` answers every path itself, limited by the rules',
  'gateway.workers': '`fluxgate start` runs in one process',
  'rules.redis': fileOnly,
  'rules.mongo': fileOnly,
  'rules.uri': fileOnly,
  'rules.database': fileOnly,
  'rules.collection': fileOnly,
  'ratelimit.filterEnabled': everyRequest,
  'ratelimit.includePatterns': everyRequest,
  'ratelimit.excludePatterns': everyRequest,
  'ratelimit.trustedProxies': connectionAddress,
  'ratelimit.clientIpHeader': connectionAddress,
  'ratelimit.headers': 'responses carry both the RateLimit and the X-RateLimit headers',
  'reload.channel': 'the rules file is watched, or read now and then: reload { strategy, pollingInterval }',
}

/** Variables of such settings. The environment is shared with other programs, so these are named, not refused. */
export const absentVariables: Readonly<Record<string, string>> = {
  FLUXGATE_SERVER_HOST: absentSettings.server as string,
  FLUXGATE_SERVER_PORT: absentSettings.server as string,
  FLUXGATE_ADMIN_TOKEN: absentSettings.server as string,
  FLUXGATE_MONGO_URI: fileOnly,
}

export function unusedVariables(environment: Environment): string[] {
  return Object.entries(absentVariables)
    .filter(([name]) => variable(environment, name) !== undefined)
    .map(([name, instead]) => `${name} is set but has no effect in this version: ${instead}.`)
}
