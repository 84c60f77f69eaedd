import type { ReloadStrategy, RuleSetProvider } from '../../core/rule-set-provider.js'
import type { ReloadOptions } from './choose-reload.js'
import { pollingReload } from './polling-reload.js'
import { watchReload } from './watch-reload.js'

/**
 * Reloads when a change is announced, and now and then all the same: a channel may be cut without anybody noticing, and
 * then a change is in force one interval later.
 */
export function pubSubReload(provider: RuleSetProvider, options: ReloadOptions = {}): ReloadStrategy {
  const [announced, polled] = [watchReload(provider, options.onError), pollingReload(options)]
  return {
    name: 'PUBSUB',
    start(reload) {
      const stops = [announced.start(reload), polled.start(reload)]
      return () => {
        for (const stop of stops) stop()
      }
    },
  }
}
