import type { ReloadStrategy, RuleSetProvider } from '../../core/contracts/rule-set-provider.js'
import { FluxGateError } from '../../core/errors.js'
import { isObject } from '../../validation/fields.js'
import { type PollingOptions, pollingReload } from './polling-reload.js'
import { pubSubReload } from './pub-sub-reload.js'
import { watchReload } from './watch-reload.js'

export const reloadChoices = ['AUTO', 'WATCH', 'PUBSUB', 'POLLING', 'NONE'] as const
export type ReloadChoice = (typeof reloadChoices)[number]

/** A reload strategy without automatic reloads. `gate.reload()` still works. */
export const noReload: ReloadStrategy = { name: 'NONE', start: () => () => {} }

export interface ReloadOptions extends PollingOptions {
  /** Called with errors of change detection, such as a directory that cannot be watched. */
  readonly onError?: (error: unknown) => void
}

/** Creates the reload strategy for a provider. AUTO selects change notifications if the provider supports them, otherwise polling. */
export async function chooseReload(
  choice: ReloadChoice | ReloadStrategy,
  provider: RuleSetProvider,
  options: ReloadOptions = {},
): Promise<ReloadStrategy> {
  if (isStrategy(choice)) return choice
  if (choice === 'NONE') return noReload
  if (choice === 'POLLING') return pollingReload(options)
  const kind = await watchKindOf(provider)
  if (choice === 'AUTO' && kind === undefined) return pollingReload(options)
  if (choice !== 'AUTO' && choice !== kind) throw unsupported(choice, provider)
  return kind === 'PUBSUB' ? pubSubReload(provider, options) : watchReload(provider, options.onError)
}

/** True for a custom strategy. */
export const isStrategy = (value: unknown): value is ReloadStrategy =>
  isObject(value) && typeof value.start === 'function' && typeof value.name === 'string'

async function watchKindOf(provider: RuleSetProvider): Promise<'WATCH' | 'PUBSUB' | undefined> {
  if (provider.watch === undefined) return undefined
  return (await provider.canWatch?.()) === false ? undefined : (provider.watchKind ?? 'WATCH')
}

function unsupported(choice: 'WATCH' | 'PUBSUB', { source }: RuleSetProvider): FluxGateError {
  const problem =
    choice === 'WATCH'
      ? 'cannot be watched; use the reload strategy AUTO, POLLING or NONE.'
      : 'are not announced on a channel; use the reload strategy AUTO.'
  return new FluxGateError('FLUXGATE_CONFIG_INVALID', `Rules from ${source} ${problem}`)
}
