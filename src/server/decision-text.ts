import type { BandDecision, Decision } from '../core/decision.js'

/**
 * Serializes a decision like `JSON.stringify`, in a fraction of the time: serialization is most of the cost of a check in a
 * batch. The output is always ASCII, so its length equals its size in bytes; other characters are escaped.
 */
export function decisionText(decision: Decision): string {
  const { bands, holdId, degradedCause } = decision
  if (holdId !== undefined || degradedCause !== undefined)
    return `${fullText(decision).slice(0, -1)}${optional('degradedCause', degradedCause)}${optional('holdId', holdId)}}`
  const only = bands[0]
  return only !== undefined && bands.length === 1 && hasSameValues(decision, only)
    ? singleBandText(decision, only)
    : fullText(decision)
}

const optional = (name: string, value: string | undefined): string =>
  value === undefined ? '' : `,"${name}":${quoted(value)}`

/** True if the decision repeats the key and numbers of its only band, which are all that varies between decisions on a rule. */
const hasSameValues = (decision: Decision, band: BandDecision): boolean =>
  band.key === decision.key &&
  band.remaining === decision.remaining &&
  band.resetAt === decision.resetAt &&
  band.retryAfterMs === decision.retryAfterMs

/** The constant parts of the text, around the key and the numbers. */
interface Frame {
  readonly decision: Decision
  readonly band: BandDecision
  readonly head: string
  readonly beforeRemaining: string
  readonly beforeBand: string
  readonly bandBeforeRemaining: string
  readonly tail: string
}

/** The frame of the previous decision. Consecutive decisions mostly share it, and comparing is cheaper than serializing. */
let lastFrame: Frame | undefined

function singleBandText(decision: Decision, band: BandDecision): string {
  let frame = lastFrame
  if (frame === undefined || !fits(frame, decision, band)) {
    frame = frameOf(decision, band)
    lastFrame = frame
  }
  const key = quoted(decision.key)
  const { remaining } = decision
  const resetAt = `,"resetAt":${decision.resetAt}`
  const retryAfterMs = `,"retryAfterMs":${decision.retryAfterMs}`
  return (
    frame.head +
    (key + frame.beforeRemaining + remaining + retryAfterMs + resetAt + `,"decidedAt":${decision.decidedAt}`) +
    frame.beforeBand +
    (key + frame.bandBeforeRemaining + remaining + resetAt + retryAfterMs) +
    frame.tail
  )
}

const fits = ({ decision: known, band: knownBand }: Frame, decision: Decision, band: BandDecision): boolean =>
  known.allowed === decision.allowed &&
  known.delayMs === decision.delayMs &&
  known.reason === decision.reason &&
  known.ruleSetId === decision.ruleSetId &&
  known.ruleId === decision.ruleId &&
  known.band === decision.band &&
  known.limit === decision.limit &&
  known.policy === decision.policy &&
  known.degraded === decision.degraded &&
  knownBand.ruleId === band.ruleId &&
  knownBand.label === band.label &&
  knownBand.limit === band.limit &&
  knownBand.allowed === band.allowed &&
  knownBand.shadow === band.shadow &&
  knownBand.windowMs === band.windowMs

const frameOf = (decision: Decision, band: BandDecision): Frame => ({
  decision,
  band,
  head: flat(beforeKey(decision)),
  beforeRemaining: flat(`,"limit":${decision.limit},"remaining":`),
  beforeBand: flat(`${beforeBands(decision)}{"ruleId":${quoted(band.ruleId)},"label":${quoted(band.label)},"key":`),
  bandBeforeRemaining: flat(`,"limit":${band.limit},"remaining":`),
  tail: flat(`${afterNumbers(band)}]}`),
})

/** Flattens a string. V8 represents concatenations as trees and traverses them whenever they are copied. */
const flat = (text: string): string => Buffer.from(text, 'latin1').toString('latin1')

function fullText(decision: Decision): string {
  const { key, limit, remaining, retryAfterMs, resetAt, decidedAt, bands } = decision
  return (
    `${beforeKey(decision)}${quoted(key)},"limit":${limit},"remaining":${remaining}` +
    `,"retryAfterMs":${retryAfterMs},"resetAt":${resetAt},"decidedAt":${decidedAt}${beforeBands(decision)}${bands.map(bandText).join()}]}`
  )
}

const beforeKey = ({ allowed, delayMs, reason, ruleSetId, ruleId, band }: Decision): string =>
  `{"allowed":${allowed},"delayMs":${delayMs},"reason":"${reason}"` +
  `,"ruleSetId":${quoted(ruleSetId)},"ruleId":${quoted(ruleId)},"band":${quoted(band)},"key":`

const beforeBands = ({ policy, degraded }: Decision): string => `,"policy":"${policy}","degraded":${degraded},"bands":[`

const bandText = (band: BandDecision): string =>
  `{"ruleId":${quoted(band.ruleId)},"label":${quoted(band.label)},"key":${quoted(band.key)},"limit":${band.limit}` +
  `,"remaining":${band.remaining},"resetAt":${band.resetAt},"retryAfterMs":${band.retryAfterMs}${afterNumbers(band)}`

const afterNumbers = ({ allowed, shadow, windowMs }: BandDecision): string =>
  `,"allowed":${allowed},"shadow":${shadow},"windowMs":${windowMs}}`

const comma = 0x2c
const bytesPerDecision = 512

/** Serializes `{ "decisions": [...] }` directly into a buffer. Building one long string first would copy it twice. */
export function decisionsBytes(decisions: readonly Decision[]): Buffer {
  let bytes = Buffer.allocUnsafe(bytesPerDecision * (decisions.length + 1))
  let at = bytes.write('{"decisions":[', 0, 'latin1')
  for (let i = 0; i < decisions.length; i++) {
    const text = decisionText(decisions[i] as Decision)
    const needed = at + text.length + 3
    if (needed > bytes.length) bytes = Buffer.concat([bytes.subarray(0, at)], Math.max(needed, bytes.length * 2))
    if (i > 0) bytes[at++] = comma
    at += bytes.write(text, at, 'latin1')
  }
  at += bytes.write(']}', at, 'latin1')
  return bytes.subarray(0, at)
}

/** Printable ASCII without quotes and backslashes, which needs no escaping. */
const plain = /^[ !#-[\]-~]*$/
const beyondAscii = /[\u0080-\uffff]/g

function quoted(text: string | null): string {
  if (text === null) return 'null'
  if (plain.test(text)) return `"${text}"`
  return JSON.stringify(text).replace(beyondAscii, (it) => `\\u${it.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
