import type { BandDecision } from '../core/decision.js'

/**
 * `standard`: RateLimit and RateLimit-Policy of draft 10 of the IETF, whose syntax is that of drafts 8 and 9. `draft-6` and
 * `draft-7`: earlier drafts, for clients that expect them. `legacy`: X-RateLimit-Limit, -Remaining and -Reset.
 * `legacy-seconds`: the same, with the seconds until the reset in place of epoch seconds.
 */
type HeaderDialect = 'standard' | 'draft-6' | 'draft-7' | 'legacy' | 'legacy-seconds'

/** `both` is `standard` and `legacy`. A list has at most one draft and one legacy dialect. */
export type HeaderChoice = false | 'both' | HeaderDialect | readonly HeaderDialect[]

const drafts: readonly HeaderDialect[] = ['standard', 'draft-6', 'draft-7']
const legacies: readonly HeaderDialect[] = ['legacy', 'legacy-seconds']

export const headerDialects = [...drafts, ...legacies]
/** The choices that are not lists. */
export const headerChoices = ['both', ...headerDialects, false] as const

/** The dialects of a choice. */
export interface Dialects {
  readonly draft: HeaderDialect | undefined
  readonly legacy: HeaderDialect | undefined
}

/** Returns undefined for an invalid choice. */
export function parseHeaderChoice(value: unknown): HeaderChoice | undefined {
  if (!Array.isArray(value)) return headerChoices.find((choice) => choice === value)
  const names: readonly HeaderDialect[] = value
  const isKnown = names.every((name) => drafts.includes(name) || legacies.includes(name))
  const isPlain = [drafts, legacies].every((kind) => names.filter((name) => kind.includes(name)).length <= 1)
  return isKnown && isPlain && names.length > 0 ? names : undefined
}

export function dialectsOf(choice: HeaderChoice): Dialects {
  const names = choice === false ? [] : choice === 'both' ? ['standard', 'legacy'] : [choice].flat()
  return { draft: drafts.find((name) => names.includes(name)), legacy: legacies.find((name) => names.includes(name)) }
}

/** The values in the headers of drafts 6 and 7. */
export interface DraftValues {
  readonly policies: string
  readonly limit: string
  readonly remaining: string
  readonly seconds: number
}

/** An item of RateLimit-Policy in drafts 6 and 7, which have no names. */
export const unnamedPolicy = ({ limit, windowMs }: BandDecision): string =>
  windowMs === 0 ? String(limit) : `${limit};w=${Math.ceil(windowMs / 1_000)}`

export const draft6 = ({ policies, limit, remaining, seconds }: DraftValues): Record<string, string> => ({
  'RateLimit-Policy': policies,
  'RateLimit-Limit': limit,
  'RateLimit-Remaining': remaining,
  'RateLimit-Reset': String(seconds),
})

export const draft7 = ({ policies, limit, remaining, seconds }: DraftValues): Record<string, string> => ({
  'RateLimit-Policy': policies,
  RateLimit: `limit=${limit}, remaining=${remaining}, reset=${seconds}`,
})
