/** Rejects every request of a key for some time after repeated rejections. Times are in ticks. */
export interface Ban {
  /** The number of rejections that start a ban. */
  readonly after: number
  /** The rejections must be within this time. */
  readonly withinTicks: number
  /** The length of the first ban. */
  readonly forTicks: number
  /** Each subsequent ban is this many times as long. */
  readonly factor: number
  /** The longest ban. The escalation starts again after this time without a ban. */
  readonly maxTicks: number
}

/** The ban of a key, and the rejections since the last ban. */
export interface BanState {
  /** The end of the last ban; 0 if there was none. */
  readonly until: number
  /** The number of bans since the escalation started. */
  readonly level: number
  /** The ticks of the rejections that count. */
  readonly rejections: readonly number[]
}

export const maxBanAfter = 1_000

/** The length of a ban after `level` earlier ones. The script computes the same. */
function banTicks({ forTicks, factor, maxTicks }: Ban, level: number): number {
  let ticks = forTicks
  for (let i = 0; i < level && ticks < maxTicks; i++) ticks *= factor
  return Math.floor(Math.min(ticks, maxTicks))
}

/** The end of the ban at `now`; 0 without a ban. If the clock has stepped back, a ban still ends within `maxTicks`. */
export const bannedUntil = (ban: Ban, { until }: BanState, now: number): number =>
  until > now ? Math.min(until, now + ban.maxTicks) : 0

/** The state after a rejection at `now`, when there is no ban. It has a ban if this is the last of `after` rejections. */
export function afterRejection(ban: Ban, state: BanState | undefined, now: number): BanState {
  const { until = 0, level = 0, rejections = [] } = state ?? {}
  const recent = [...rejections.filter((tick) => tick > now - ban.withinTicks), now]
  if (recent.length < ban.after) return { until, level, rejections: recent }
  const earlier = now >= until + ban.maxTicks ? 0 : level
  return { until: now + banTicks(ban, earlier), level: earlier + 1, rejections: [] }
}

/** The tick from which the state is equivalent to none. */
export const banExpiry = (ban: Ban, { until, rejections }: BanState): number =>
  Math.max(until === 0 ? 0 : until + ban.maxTicks, (rejections.at(-1) ?? 0) + ban.withinTicks)
