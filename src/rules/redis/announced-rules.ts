import { randomUUID } from 'node:crypto'
import type { EditedRules, RuleSetProvider } from '../../core/rule-set-provider.js'
import { inSlices } from '../../core/scheduling/steps.js'
import type { RedisConnection } from '../../redis/client/connection.js'
import { forwardedRules } from '../forwarded-rules.js'
import { ruleSetsDigest } from '../rule-sets-digest.js'
import { RuleAnnouncements } from './rule-announcements.js'
import type { RulePoller } from './rule-poller.js'

/** Told to others with each change: what it was about, and whom it comes from. */
export const announcement = (ruleSetId: string, timestamp: number, source: string): string =>
  JSON.stringify({ ruleSetId, fullReload: false, timestamp, source })

/**
 * Rules that are kept anywhere, and announced on a channel of Redis: edits that are made through the provider are told
 * there, and those of others are heard. Changes that nobody tells of are looked for by one process, which then tells.
 */
export function announcedRules(
  provider: RuleSetProvider,
  connection: RedisConnection,
  channel: string,
  poller: RulePoller,
): RuleSetProvider {
  const announcements = new RuleAnnouncements(connection, channel)
  const id = randomUUID()
  let known: string | undefined
  let isKnownToAll = false

  /** Others learn of it at the next poll, if not by this. */
  async function announce(message: string): Promise<void> {
    isKnownToAll = true
    await connection.call(channel, ['PUBLISH', channel, message]).catch(() => {})
  }
  const announceEdit = ({ ruleSetId }: EditedRules): Promise<void> => announce(announcement(ruleSetId, Date.now(), id))
  const { canWatch: _, ...rules } = forwardedRules(provider)
  return {
    ...rules,
    watchKind: 'PUBSUB',
    async load() {
      const ruleSets = await provider.load()
      const digest = await inSlices(ruleSetsDigest(ruleSets))
      const isNews = known !== undefined && known !== digest && !isKnownToAll
      known = digest
      isKnownToAll = false
      if (isNews && poller.isHeld) await announce('*')
      return ruleSets
    },
    // Who cannot hear, such as for want of leave to, has to look.
    isPoller: async () => !announcements.isListening || poller.isOurs(),
    watch(onChange, onError) {
      const heard = (): void => {
        isKnownToAll = true
        onChange()
      }
      const stops = [announcements.watch(heard, onError), provider.onEdit?.(announceEdit)]
      return () => {
        for (const stop of stops) stop?.()
        poller.release()
      }
    },
  }
}
