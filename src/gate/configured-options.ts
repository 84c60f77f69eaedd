import { type Config, loadConfig } from '../config/config.js'
import { ruleStoreSettings } from '../config/rules.js'
import { redisSettings } from '../config/store.js'
import { omitUndefined } from '../core/omit-undefined.js'
import type { FluxGateOptions } from './options.js'

/** Converts a configuration to the options of a gate. */
export function gateOptions(config: Config): FluxGateOptions {
  const { store, ratelimit, reload, waitForRefill } = config
  const { defaultRuleSetId, missingRuleBehavior, ipv6Prefix, onStoreFailure, localShare } = ratelimit
  return {
    rules: ruleStoreSettings(config),
    store: redisSettings(store) ?? 'memory',
    maxKeys: store.maxKeys,
    maxReservations: store.maxReservations,
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

/** Merges the options with their configuration file. Without `config`, reads neither files nor the environment. */
export async function readGateOptions(options: FluxGateOptions): Promise<FluxGateOptions> {
  const { config: path, ...explicit } = options
  if (path === undefined) return options
  const configured = gateOptions(await loadConfig({ path, env: process.env, cwd: process.cwd() }))
  return {
    ...configured,
    ...omitUndefined(explicit),
    reload: { ...configured.reload, ...omitUndefined(explicit.reload ?? {}) },
    waitForRefill: { ...configured.waitForRefill, ...omitUndefined(explicit.waitForRefill ?? {}) },
  }
}
