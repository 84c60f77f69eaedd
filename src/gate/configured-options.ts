import { type Config, loadConfig } from '../config/config.js'
import { ruleStoreSettings } from '../config/rules.js'
import { redisSettings } from '../config/store.js'
import { omitUndefined } from '../core/omit-undefined.js'
import type { FluxGateOptions } from './options.js'

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
    ...omitUndefined(asked),
    reload: { ...configured.reload, ...omitUndefined(asked.reload ?? {}) },
    waitForRefill: { ...configured.waitForRefill, ...omitUndefined(asked.waitForRefill ?? {}) },
  }
}
