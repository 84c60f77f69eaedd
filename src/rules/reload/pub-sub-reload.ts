import { FluxGateError } from '../../core/errors.js'
import type { ReloadRequest, ReloadStrategy, RuleSetProvider } from '../../core/rule-set-provider.js'
import type { ReloadOptions } from './choose-reload.js'
import { pollingReload, wakeAfter } from './polling-reload.js'
import { watchReload } from './watch-reload.js'

const firstRetryMs = 50
const slowestRetryMs = 5_000

/**
 * Reloads when a change is announced, and now and then all the same: a channel may be cut without anybody noticing, and
 * then a change is in force one interval later. Rules that could not be read after an announcement are tried again soon,
 * because a channel is often back before whoever has to be asked for the rules.
 * Where one process polls for all, the others hear of what it finds.
 */
export function pubSubReload(provider: RuleSetProvider, options: ReloadOptions = {}): ReloadStrategy {
  const [announced, polled] = [watchReload(provider, options.onError), pollingReload(options)]
  return {
    name: 'PUBSUB',
    start(reload) {
      let cancel = (): void => {}
      let failures = 0
      const reloadUntilRead = async (): Promise<void> => {
        cancel()
        try {
          await reload()
          failures = 0
        } catch (error) {
          if (isStopped || !isUnreadable(error)) return
          cancel = wakeAfter(Math.min(slowestRetryMs, firstRetryMs * 2 ** failures++), options.clock, reloadUntilRead)
        }
      }
      const pollInTurn = async (asked?: ReloadRequest): Promise<void> => {
        if ((await provider.isPoller?.()) !== false) await reload(asked)
      }
      let isStopped = false
      const stops = [announced.start(reloadUntilRead), polled.start(pollInTurn)]
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
