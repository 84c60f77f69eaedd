import { randomUUID } from 'node:crypto'
import type { EditedRules, RuleSetProvider } from '../../core/contracts/rule-set-provider.js'
import { inSlices } from '../../core/scheduling/steps.js'
import type { RedisConnection } from '../../redis/client/connection.js'
import { forwardProvider } from '../forward-provider.js'
import { ruleSetsDigest } from '../rule-sets-digest.js'
import { ChangeSubscriber } from './change-subscriber.js'
import type { RulePoller } from './rule-poller.js'

/** The message that announces a change: the rule set, the time and the id of the sender. */
export const announcementMessage = (ruleSetId: string, timestamp: number, source: string): string =>
  JSON.stringify({ ruleSetId, fullReload: false, timestamp, source })

/**
 * Adds change announcements on a Redis channel to any rule provider. Edits through the provider are published, and those of
 * other processes are received. One elected process polls for changes that were not announced, and publishes them.
 */
export function announcingProvider(
  provider: RuleSetProvider,
  connection: RedisConnection,
  channel: string,
  poller: RulePoller,
): RuleSetProvider {
  const announcements = new ChangeSubscriber(connection, channel)
  const id = randomUUID()
  let lastDigest: string | undefined
  let isAnnounced = false

  /** A failure is ignored, because other processes find the change at their next poll. */
  async function announce(message: string): Promise<void> {
    isAnnounced = true
    await connection.call(channel, ['PUBLISH', channel, message]).catch(() => {})
  }
  const announceEdit = ({ ruleSetId }: EditedRules): Promise<void> =>
    announce(announcementMessage(ruleSetId, Date.now(), id))
  const { canWatch: _, ...rules } = forwardProvider(provider)
  return {
    ...rules,
    watchKind: 'PUBSUB',
    async load() {
      const ruleSets = await provider.load()
      const digest = await inSlices(ruleSetsDigest(ruleSets))
      const isUnannounced = lastDigest !== undefined && lastDigest !== digest && !isAnnounced
      lastDigest = digest
      isAnnounced = false
      if (isUnannounced && poller.isHeld) await announce('*')
      return ruleSets
    },
    // A process that cannot subscribe, for example without permission, polls itself.
    isPoller: async () => !announcements.isListening || poller.shouldPoll(),
    watch(onChange, onError) {
      const onAnnouncement = (): void => {
        isAnnounced = true
        onChange()
      }
      const stops = [announcements.watch(onAnnouncement, onError), provider.onEdit?.(announceEdit)]
      return () => {
        for (const stop of stops) stop?.()
        poller.release()
      }
    },
  }
}
