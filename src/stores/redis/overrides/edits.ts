/**
 * The last edit of an override, as text: a random id, which no edit has again, also on a server that has forgotten some; the
 * id of the edit before; and the key that it was about. So who knows the one before knows all that has changed.
 */
export interface OverrideEdit {
  readonly id: string
  readonly before: string
  readonly key: string
}

/** Changes an override and tells of it, both at once: nobody who knows of the edit has not seen the change. */
export const editScript = `local changed = redis.call(ARGV[1], KEYS[1], unpack(ARGV, 3))
local before = string.match(redis.call('GET', KEYS[2]) or '', '^[^ ]+') or ''
redis.call('SET', KEYS[2], ARGV[2] .. ' ' .. before .. ' ' .. ARGV[3])
return changed`

/** Of `''`, when there was none: nobody's. */
export function readEdit(known: string): OverrideEdit {
  const first = known.indexOf(' ')
  const second = known.indexOf(' ', first + 1)
  return {
    id: known.slice(0, first < 0 ? 0 : first),
    before: known.slice(first + 1, second),
    key: known.slice(second + 1),
  }
}
