import type { BandDecision, Decision } from '../../core/decision.js'

/** True for a complete Decision. Strings are not restricted, so code that displays them must escape them. */
export function isDecision(value: unknown): value is Decision {
  return hasAll(value, decisionFields)
}

type Test = (value: unknown) => boolean

const isText: Test = (value) => typeof value === 'string'
const isTextOrNull: Test = (value) => value === null || typeof value === 'string'
const isFlag: Test = (value) => typeof value === 'boolean'
const isNumber: Test = (value) => typeof value === 'number' && Number.isFinite(value)
const isDuration: Test = (value) => isNumber(value) && (value as number) >= 0
const isOptional =
  (test: Test): Test =>
  (value) =>
    value === undefined || test(value)
const isRetry: Test = (value) => value === null || isDuration(value)

const bandFields: Readonly<Record<keyof BandDecision, Test>> = {
  ruleId: isText,
  label: isText,
  key: isText,
  limit: isNumber,
  remaining: isNumber,
  resetAt: isNumber,
  retryAfterMs: isRetry,
  allowed: isFlag,
  shadow: isFlag,
  windowMs: isDuration,
}

/** `granted` is set only by `createLimiter`. */
const decisionFields: Readonly<Record<Exclude<keyof Decision, 'granted'>, Test>> = {
  allowed: isFlag,
  delayMs: isDuration,
  reason: isText,
  ruleSetId: isTextOrNull,
  ruleId: isTextOrNull,
  band: isTextOrNull,
  key: isTextOrNull,
  limit: isNumber,
  remaining: isNumber,
  retryAfterMs: isRetry,
  resetAt: isNumber,
  policy: (value) => value === 'REJECT' || value === 'WAIT_FOR_REFILL',
  degraded: isFlag,
  degradedCause: isOptional(isText),
  // Servers of earlier versions do not send it.
  decidedAt: isOptional(isNumber),
  holdId: isOptional(isText),
  bands: (value) => Array.isArray(value) && value.every((band) => hasAll(band, bandFields)),
}

function hasAll(value: unknown, tests: Readonly<Record<string, Test>>): boolean {
  if (typeof value !== 'object' || value === null) return false
  for (const name in tests) if (!tests[name]?.((value as Record<string, unknown>)[name])) return false
  return true
}
