import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { configInvalid } from '../validation/config-invalid.js'
import { noMistakes } from '../validation/issues.js'
import { environmentName } from '../validation/setting-names.js'
import { readConfigFile } from './config-file.js'
import { type Environment, variable } from './placeholders.js'
import { readSettings } from './reader.js'
import { type Settings, settings as standardSettings } from './settings.js'

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
