import type { ReloadRequest, ReloadStrategy, RuleSetProvider } from '../../core/contracts/rule-set-provider.js'
import { FluxGateError } from '../../core/errors.js'
import type { ReloadOptions } from './choose-reload.js'
import { pollingReload, wakeAfter } from './polling-reload.js'
import { watchReload } from './watch-reload.js'

const firstRetryMs = 50
const slowestRetryMs = 5_000

/**
 * Creates a reload strategy that reloads when a change is announced. It polls as well, because a lost subscription may go
 * unnoticed; a missed change then takes effect within one polling interval. If the rules are unreadable after an announcement,
 * it retries with exponential backoff, because the channel often recovers before the rule store.
 * If the provider elects a poller (`isPoller`), only that process polls and announces the changes it finds.
 */
export function pubSubReload(provider: RuleSetProvider, options: ReloadOptions = {}): ReloadStrategy {
  const [announced, polled] = [watchReload(provider, options.onError), pollingReload(options)]
  return {
    name: 'PUBSUB',
    start(reload) {
      let cancel = (): void => {}
      let failures = 0
      const reloadWithRetries = async (): Promise<void> => {
        cancel()
        try {
          await reload()
          failures = 0
        } catch (error) {
          if (isStopped || !isUnreadable(error)) return
          cancel = wakeAfter(Math.min(slowestRetryMs, firstRetryMs * 2 ** failures++), options.clock, reloadWithRetries)
        }
      }
      const pollIfPoller = async (request?: ReloadRequest): Promise<void> => {
        if ((await provider.isPoller?.()) !== false) await reload(request)
      }
      let isStopped = false
      const stops = [announced.start(reloadWithRetries), polled.start(pollIfPoller)]
      return () => {
        isStopped = true
        cancel()
        for (const stop of stops) stop()
      }
    },
  }
}

const isUnreadable = (error: unknown): boolean =>
  error instanceof FluxGateError && error.code === 'FLUXGATE_RULES_UNREADABLE'
