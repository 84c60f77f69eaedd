/**
 * What a fluxgate.yaml may say in other versions and this one does not have. It is refused rather than ignored: a limit
 * that only appears to be in force is worse than a program that does not start.
 */
import { type Environment, variable } from './config-placeholders.js'

const fileOnly = 'rules are read from one file: rules { type: file, path }'

/** By place, with what this version has instead. */
export const absentSettings: Readonly<Record<string, string>> = {
  server: '`fluxgate start` has one endpoint: gateway { host, port }',
  'rules.redis': fileOnly,
  'rules.mongo': fileOnly,
  'rules.uri': fileOnly,
  'rules.database': fileOnly,
  'rules.collection': fileOnly,
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
