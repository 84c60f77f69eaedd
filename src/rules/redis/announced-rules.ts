import { randomUUID } from 'node:crypto'
import type { EditedRules, RuleSetProvider } from '../../core/rule-set-provider.js'
import type { RedisConnection } from '../../redis/connection.js'
import { forwardedRules } from '../forwarded-rules.js'
import { RuleAnnouncements } from './rule-announcements.js'

/** Told to others with each change: what it was about, and whom it comes from. */
export const announcement = (ruleSetId: string, timestamp: number, source: string): string =>
  JSON.stringify({ ruleSetId, fullReload: false, timestamp, source })

/**
 * Rules that are kept anywhere, and announced on a channel of Redis: edits that are made through the provider are told
 * there, and those of others are heard.
 */
export function announcedRules(
  provider: RuleSetProvider,
  connection: RedisConnection,
  channel: string,
): RuleSetProvider {
  const announcements = new RuleAnnouncements(connection, channel)
  const id = randomUUID()
  /** Others learn of it at their next poll, if not by this. */
  const announce = ({ ruleSetId }: EditedRules): Promise<unknown> =>
    connection.call(channel, ['PUBLISH', channel, announcement(ruleSetId, Date.now(), id)]).catch(() => {})
  const { canWatch: _, ...rules } = forwardedRules(provider)
  return {
    ...rules,
    watchKind: 'PUBSUB',
    watch(onChange, onError) {
      const stops = [announcements.watch(onChange, onError), provider.onEdit?.(announce)]
      return () => {
        for (const stop of stops) stop?.()
      }
    },
  }
}
