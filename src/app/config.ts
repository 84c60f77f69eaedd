import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { given } from '../core/given.js'
import { noMistakes } from '../rules/mistakes.js'
import { readConfigFile } from './config-file.js'
import { configInvalid } from './config-invalid.js'
import { environmentName } from './config-names.js'
import { type Environment, variable } from './config-placeholders.js'
import { readSettings } from './config-reader.js'
import { ruleStoreSettings } from './config-rules.js'
import { type Settings, settings as standardSettings } from './config-settings.js'
import { redisSettings } from './config-store.js'
import type { FluxGateOptions } from './gate-options.js'

export interface Config extends Settings {
  /** The file it was read from, absolute; `undefined` if there is none. */
  readonly file: string | undefined
  /** Of what the file said then. */
  readonly fileDigest: string | undefined
  /** The rules are where they usually are, and nothing says that there have to be any. */
  readonly areRulesOptional: boolean
}

export interface ConfigSource {
  /** Left out: `fluxgate.yaml` in `cwd`, if there is one. */
  readonly path?: string | undefined
  readonly env: Environment
  readonly cwd: string
}

const noFile = { document: undefined, digest: undefined }

/** File and environment → every setting. The environment wins over the file; paths in the file are relative to it. */
export async function loadConfig({ path, env, cwd }: ConfigSource): Promise<Config> {
  const shown = path ?? 'fluxgate.yaml'
  const file = resolve(cwd, shown)
  const hasFile = path !== undefined || existsSync(file)
  const { document, digest } = hasFile ? await readConfigFile(file, shown) : noFile
  const mistakes = noMistakes()
  const settings = readSettings(document, env, mistakes)
  if (mistakes.count > 0) throw configInvalid(hasFile ? shown : 'The configuration', mistakes.kept)
  const located = withPaths(settings, (place, path) => {
    const isFromEnvironment = variable(env, environmentName(place)) !== undefined
    return resolve(hasFile && !isFromEnvironment ? dirname(file) : cwd, path)
  })
  return {
    ...located,
    file: hasFile ? file : undefined,
    fileDigest: digest,
    areRulesOptional: settings.rules.path === standardSettings.rules.path.standard,
  }
}

/** With every path absolute. */
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

/** What an access log may be called besides the path of a file. */
const standardStreams: readonly string[] = ['stdout', 'stderr']

/** What a gate is made of, by configuration. */
export function gateOptions(config: Config): FluxGateOptions {
  const { store, ratelimit, reload, waitForRefill } = config
  const { defaultRuleSetId, missingRuleBehavior, ipv6Prefix, onStoreFailure, localShare } = ratelimit
  return {
    rules: ruleStoreSettings(config),
    store: redisSettings(store) ?? 'memory',
    maxKeys: store.maxKeys,
    ...(defaultRuleSetId !== undefined && { defaultRuleSetId }),
    missingRuleBehavior,
    ipv6Prefix,
    onStoreFailure,
    localShare,
    reload: {
      strategy: reload.strategy,
      pollingIntervalMs: reload.pollingInterval,
      resetBucketsOnReload: reload.resetBucketsOnReload,
      channel: reload.channel,
    },
    waitForRefill: {
      maxWaitMs: waitForRefill.maxWaitTime,
      maxConcurrentWaits: waitForRefill.maxConcurrentWaits,
    },
  }
}

/** Options with what their configuration file adds; without one, neither files nor the environment are looked at. */
export async function readGateOptions(options: FluxGateOptions): Promise<FluxGateOptions> {
  const { config: path, ...asked } = options
  if (path === undefined) return options
  const configured = gateOptions(await loadConfig({ path, env: process.env, cwd: process.cwd() }))
  return {
    ...configured,
    ...given(asked),
    reload: { ...configured.reload, ...given(asked.reload ?? {}) },
    waitForRefill: { ...configured.waitForRefill, ...given(asked.waitForRefill ?? {}) },
  }
}
