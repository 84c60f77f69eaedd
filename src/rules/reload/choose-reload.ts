import { FluxGateError } from '../../core/errors.js'
import type { ReloadStrategy, RuleSetProvider } from '../../core/rule-set-provider.js'
import { noReload } from './no-reload.js'
import { type PollingOptions, pollingReload } from './polling-reload.js'
import { watchReload } from './watch-reload.js'

export const reloadChoices = ['AUTO', 'WATCH', 'PUBSUB', 'POLLING', 'NONE'] as const
export type ReloadChoice = (typeof reloadChoices)[number]

export interface ReloadOptions extends PollingOptions {
  /** Trouble with noticing changes, such as a directory that cannot be watched. */
  readonly onError?: (error: unknown) => void
}

/** AUTO is the best that the provider offers: it notices changes by itself, or else it is asked now and then. */
export function chooseReload(
  choice: ReloadChoice,
  provider: RuleSetProvider,
  options: ReloadOptions = {},
): ReloadStrategy {
  switch (choice) {
    case 'AUTO':
      return provider.watch ? watchReload(provider, options.onError) : pollingReload(options)
    case 'WATCH':
      return watchReload(provider, options.onError)
    case 'POLLING':
      return pollingReload(options)
    case 'NONE':
      return noReload
    case 'PUBSUB':
      throw new FluxGateError(
        'FLUXGATE_CONFIG_INVALID',
        `Rules from ${provider.source} are not announced on a channel; use the reload strategy AUTO.`,
      )
  }
}
