import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { ValidationIssue } from '../core/errors.js'
import { configInvalid } from '../validation/config-invalid.js'
import { noIssues } from '../validation/issues.js'
import { environmentName } from '../validation/setting-names.js'
import { readConfigFile } from './config-file.js'
import { type Environment, variable } from './placeholders.js'
import { readSettings } from './read-settings.js'
import { settings as defaults, type Settings } from './settings.js'

export interface Config extends Settings {
  /** Absolute path of the configuration file; undefined if no file was loaded. */
  readonly file: string | undefined
  /** Digest of the file's contents when it was loaded. */
  readonly fileDigest: string | undefined
  /** Adds the positions in the file to issues that are found after it was loaded. */
  locate(issues: readonly ValidationIssue[]): readonly ValidationIssue[]
  /** True if `rules.path` is the default, so that a missing rules file is not an error. */
  readonly areRulesOptional: boolean
}

export interface ConfigSource {
  /** Default: `fluxgate.yaml` in `cwd`, if it exists. */
  readonly path?: string | undefined
  readonly env: Environment
  readonly cwd: string
}

const noFile = { document: undefined, digest: undefined, locate: (issues: readonly ValidationIssue[]) => issues }

/** Loads all settings. Environment variables override the file. Paths in the file are relative to the file. */
export async function loadConfig({ path, env, cwd }: ConfigSource): Promise<Config> {
  const shown = path ?? 'fluxgate.yaml'
  const file = resolve(cwd, shown)
  const hasFile = path !== undefined || existsSync(file)
  const { document, digest, locate } = hasFile ? await readConfigFile(file, shown) : noFile
  const issues = noIssues()
  const settings = readSettings(document, env, issues)
  if (issues.count > 0) throw configInvalid(hasFile ? shown : 'Configuration', locate(issues.kept))
  const located = withPaths(settings, (place, path) => {
    const isFromEnvironment = variable(env, environmentName(place)) !== undefined
    return resolve(hasFile && !isFromEnvironment ? dirname(file) : cwd, path)
  })
  return {
    ...located,
    file: hasFile ? file : undefined,
    fileDigest: digest,
    locate,
    areRulesOptional: settings.rules.path === defaults.rules.path.defaultValue,
  }
}

/** Makes all paths absolute. */
function withPaths(settings: Settings, located: (place: string, path: string) => string): Settings {
  const { server, gateway, rules } = settings
  const { accessLog } = gateway
  const tlsOf = (part: 'server' | 'gateway') => {
    const { tlsCert, tlsKey } = settings[part]
    return {
      tlsCert: tlsCert && located(`${part}.tlsCert`, tlsCert),
      tlsKey: tlsKey && located(`${part}.tlsKey`, tlsKey),
    }
  }
  const isFile = accessLog !== undefined && !standardStreams.includes(accessLog)
  return {
    ...settings,
    server: { ...server, ...tlsOf('server') },
    gateway: {
      ...gateway,
      ...tlsOf('gateway'),
      accessLog: isFile ? located('gateway.accessLog', accessLog) : accessLog,
    },
    rules: { ...rules, path: located('rules.path', rules.path) },
  }
}

/** Access log destinations that are not file paths. */
const standardStreams: readonly string[] = ['stdout', 'stderr']
