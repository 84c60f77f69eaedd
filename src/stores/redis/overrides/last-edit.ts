/**
 * The record of the last edit of an override, as text with three fields: `<id> <id of the previous edit> <key>`. A process that
 * knows the previous edit therefore knows everything that has changed. Ids are random, because a server that lost edits in a
 * failover would repeat the numbers of a counter.
 */
interface OverrideEdit {
  readonly id: string
  readonly previousId: string
  readonly key: string
}

/**
 * Changes an override and records the edit atomically, so that a process never knows an edit without its change.
 * KEYS  hash of the override, edit record
 * ARGV  HSET or HDEL, id of the edit, key, value of HSET
 */
export const editScript = `local changed = redis.call(ARGV[1], KEYS[1], unpack(ARGV, 3))
local previous = string.match(redis.call('GET', KEYS[2]) or '', '^[^ ]+') or ''
redis.call('SET', KEYS[2], ARGV[2] .. ' ' .. previous .. ' ' .. ARGV[3])
return changed`

/** Parses a record. All fields of `''`, which means that there was no edit, are empty. */
export function parseEdit(record: string): OverrideEdit {
  const first = record.indexOf(' ')
  const second = record.indexOf(' ', first + 1)
  return {
    id: record.slice(0, first < 0 ? 0 : first),
    previousId: record.slice(first + 1, second),
    key: record.slice(second + 1),
  }
}
